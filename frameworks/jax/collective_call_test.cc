#include "frameworks/jax/collective_call.h"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::frameworks::jax {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Memory = CollectiveCall::Memory;

// A call frame as XLA makes it.
class Frame {
 public:
  Frame() {
    SetInt("op", HVD_ALLREDUCE);
    SetInt("reduction", HVD_SUM);
    SetInt("root_rank", 3);
    SetInt("process_set", 7);
    SetInt("is_group", 1);
    SetDouble("prescale", 0.5);
    SetDouble("postscale", 4);
    strings_["name"] = "grouped_allreduce.x";
  }

  void SetInt(const std::string& name, int64_t value) { ints_[name] = value; }
  void SetDouble(const std::string& name, double value) { doubles_[name] = value; }
  void Remove(const std::string& name) { ints_.erase(name); }

  // A float array of these dimensions, and its result.
  void AddTensor(std::vector<int64_t> from, std::vector<int64_t> to) {
    arguments_.push_back(MakeBuffer(std::move(from)));
    results_.push_back(MakeBuffer(std::move(to)));
  }

  XlaBuffer& argument(size_t i) { return arguments_[i]->buffer; }
  XlaBuffer& result(size_t i) { return results_[i]->buffer; }
  char after_results() const { return byte_; }

  XlaCallFrame Get() {
    XlaCallFrame frame{};
    for (auto& [name, value] : ints_) AddScalar(name, XlaType::kS64, &value);
    for (auto& [name, value] : doubles_) AddScalar(name, XlaType::kF64, &value);
    for (auto& [name, value] : strings_) {
      spans_.push_back({value.data(), value.size()});
      Add(name, XlaAttributeKind::kString, &spans_.back());
    }
    frame.attributes = {sizeof(XlaAttributes), nullptr,       static_cast<int64_t>(names_.size()),
                        kinds_.data(),         names_.data(), values_.data()};
    for (auto& own : arguments_) argument_list_.push_back(&own->buffer);
    for (auto& own : results_) result_list_.push_back(&own->buffer);
    token_.data = &byte_;
    argument_list_.push_back(&token_);
    result_list_.push_back(&token_);
    frame.arguments = ListOf(argument_list_);
    frame.results = ListOf(result_list_);
    return frame;
  }

 private:
  struct OwnBuffer {
    std::vector<int64_t> dims;
    std::vector<float> data;
    XlaBuffer buffer;
  };

  static std::unique_ptr<OwnBuffer> MakeBuffer(std::vector<int64_t> dims) {
    auto own = std::make_unique<OwnBuffer>();
    own->dims = std::move(dims);
    own->data.assign(100, 1.0F);
    own->buffer = {sizeof(XlaBuffer),
                   nullptr,
                   XlaType::kF32,
                   own->data.data(),
                   static_cast<int64_t>(own->dims.size()),
                   own->dims.data()};
    return own;
  }

  static XlaBuffers ListOf(std::vector<XlaBuffer*>& list) {
    return {sizeof(XlaBuffers), nullptr, static_cast<int64_t>(list.size()), nullptr, list.data()};
  }

  void AddScalar(const std::string& name, XlaType type, void* value) {
    scalars_.push_back({type, value});
    Add(name, XlaAttributeKind::kScalar, &scalars_.back());
  }

  void Add(const std::string& name, XlaAttributeKind kind, void* value) {
    name_spans_.push_back({name.data(), name.size()});
    names_.push_back(&name_spans_.back());
    kinds_.push_back(kind);
    values_.push_back(value);
  }

  std::map<std::string, int64_t> ints_;
  std::map<std::string, double> doubles_;
  std::map<std::string, std::string> strings_;
  std::vector<std::unique_ptr<OwnBuffer>> arguments_, results_;
  std::deque<XlaScalar> scalars_;
  std::deque<XlaByteSpan> spans_, name_spans_;
  std::vector<XlaByteSpan*> names_;
  std::vector<XlaAttributeKind> kinds_;
  std::vector<void*> values_;
  std::vector<XlaBuffer*> argument_list_, result_list_;
  XlaBuffer token_{};
  char byte_ = 'x';
};

TEST(CollectiveCallTest, Read_MakesARequestOfEachTensor) {
  Frame frame;
  frame.AddTensor({2, 3}, {2, 3});
  frame.AddTensor({}, {});
  CollectiveCall call;
  ASSERT_EQ(call.Read(frame.Get(), Memory::kHost), "");
  EXPECT_EQ(call.process_set(), 7);
  ASSERT_EQ(call.requests().size(), 2);
  const hvd_request& first = call.requests()[0];
  EXPECT_STREQ(first.name, "grouped_allreduce.x_1of2");
  EXPECT_STREQ(call.requests()[1].name, "grouped_allreduce.x_2of2");
  EXPECT_EQ(first.op, HVD_ALLREDUCE);
  EXPECT_EQ(first.reduction, HVD_SUM);
  EXPECT_EQ(first.root_rank, 3);
  EXPECT_EQ(first.dtype, HVD_FLOAT32);
  EXPECT_EQ(first.device, HVD_HOST);
  EXPECT_EQ(first.prescale, 0.5);
  EXPECT_EQ(first.postscale, 4);
  EXPECT_THAT(std::vector<int64_t>(first.shape, first.shape + first.ndim), ElementsAre(2, 3));
  EXPECT_EQ(first.input, frame.argument(0).data);
  EXPECT_EQ(first.output, frame.result(0).data);
  EXPECT_EQ(call.requests()[1].ndim, 0);
  EXPECT_EQ(frame.after_results(), 0);
}

TEST(CollectiveCallTest, Read_ASingleTensorHasTheNameAsItIs) {
  Frame frame;
  frame.SetInt("is_group", 0);
  frame.AddTensor({1}, {1});
  CollectiveCall call;
  ASSERT_EQ(call.Read(frame.Get(), Memory::kHost), "");
  EXPECT_STREQ(call.requests()[0].name, "grouped_allreduce.x");
}

TEST(CollectiveCallTest, Read_RefusesWhatItDoesNotKnow) {
  {
    Frame frame;
    frame.AddTensor({1}, {1});
    frame.Remove("process_set");
    EXPECT_THAT(CollectiveCall().Read(frame.Get(), Memory::kHost),
                HasSubstr("another version of Horovod"));
  }
  {
    Frame frame;
    frame.AddTensor({1}, {1});
    frame.argument(0).dtype = static_cast<XlaType>(15);
    EXPECT_EQ(CollectiveCall().Read(frame.Get(), Memory::kHost),
              "grouped_allreduce.x: arrays of this type are not supported");
  }
  Frame empty;
  EXPECT_THAT(CollectiveCall().Read(empty.Get(), Memory::kHost),
              HasSubstr("another version of Horovod"));
}

TEST(CollectiveCallTest, UseDevice_OffersAllResultsWithTheirSizes) {
  for (const int op : {HVD_ALLREDUCE, HVD_ALLGATHER, HVD_ALLTOALL, HVD_REDUCESCATTER}) {
    Frame frame;
    frame.SetInt("op", op);
    frame.AddTensor({2, 2}, {4, 2});
    frame.AddTensor({0, 2}, {0, 2});
    CollectiveCall call;
    ASSERT_EQ(call.Read(frame.Get(), Memory::kDevice), "");
    EXPECT_EQ(frame.after_results(), 'x') << "the host can't write to a device";
    int event = 0;
    call.UseDevice(3, &event);
    EXPECT_EQ(call.requests()[0].device, 3);
    EXPECT_EQ(call.requests()[0].ready_event, &event);
    EXPECT_EQ(call.requests()[0].output, frame.result(0).data);
    EXPECT_EQ(call.requests()[0].output_bytes, 32);
    EXPECT_EQ(call.requests()[1].output, nullptr);
  }
}

TEST(CollectiveCallTest, UseHost_TakesTheCopyAndOffersItIfTheShapeIsTheSame) {
  char copy[16];
  for (const int op : {HVD_BROADCAST, HVD_ALLGATHER}) {
    Frame frame;
    frame.SetInt("op", op);
    frame.AddTensor({2, 2}, {2, 2});
    CollectiveCall call;
    ASSERT_EQ(call.Read(frame.Get(), Memory::kDevice), "");
    EXPECT_EQ(call.input_bytes(0), 16);
    EXPECT_EQ(call.result_bytes(0), 16);
    call.UseHost(0, copy);
    EXPECT_EQ(call.requests()[0].input, copy);
    EXPECT_EQ(call.requests()[0].output, op == HVD_BROADCAST ? copy : nullptr);
    EXPECT_EQ(call.requests()[0].device, HVD_HOST);
  }
}

TEST(CollectiveCallTest, IsForDevices_UnlessItScalesIntegersOrIsAdasum) {
  const struct {
    int op, reduction;
    double scale;
    XlaType type;
    bool is_for_devices;
  } cases[] = {
      {HVD_ALLREDUCE, HVD_SUM, 1, XlaType::kS32, true},
      {HVD_ALLREDUCE, HVD_SUM, 2, XlaType::kS32, false},
      {HVD_ALLREDUCE, HVD_AVERAGE, 1, XlaType::kS8, false},
      {HVD_ALLREDUCE, HVD_AVERAGE, 2, XlaType::kBf16, true},
      {HVD_ALLREDUCE, HVD_MAX, 1, XlaType::kU8, true},
      {HVD_ALLREDUCE, HVD_MAX, 2, XlaType::kF32, false},
      {HVD_ALLREDUCE, HVD_ADASUM, 1, XlaType::kF32, false},
      {HVD_REDUCESCATTER, HVD_AVERAGE, 1, XlaType::kS64, false},
      {HVD_ALLGATHER, HVD_AVERAGE, 1, XlaType::kU32, true},
  };
  for (const auto& c : cases) {
    Frame frame;
    frame.SetInt("op", c.op);
    frame.SetInt("reduction", c.reduction);
    frame.SetDouble("prescale", c.scale);
    frame.SetDouble("postscale", 1);
    frame.AddTensor({1}, {1});
    frame.argument(0).dtype = frame.result(0).dtype = c.type;
    CollectiveCall call;
    ASSERT_EQ(call.Read(frame.Get(), Memory::kDevice), "");
    EXPECT_EQ(call.IsForDevices(), c.is_for_devices) << c.op << " " << c.reduction;
  }
}

// The program may have been compiled for fewer ranks than there are now.
TEST(CollectiveCallTest, ResultsWhoseSizeDependsOnOtherRanks_AreCopiedIfTheyFit) {
  for (const int op : {HVD_ALLGATHER, HVD_ALLTOALL, HVD_REDUCESCATTER}) {
    Frame frame;
    frame.SetInt("op", op);
    frame.AddTensor({2, 2}, {4, 2});
    CollectiveCall call;
    ASSERT_EQ(call.Read(frame.Get(), Memory::kHost), "");
    EXPECT_EQ(call.requests()[0].output, nullptr);
    std::vector<float> data(8, 5.0F);
    std::vector<int64_t> shape = {4, 2};
    hvd_tensor result{};
    result.data = data.data();
    result.shape = shape.data();
    result.ndim = 2;
    EXPECT_EQ(call.Take(0, result), "");
    const auto* const taken = static_cast<float*>(frame.result(0).data);
    EXPECT_EQ(std::vector<float>(taken, taken + 8), data);
    EXPECT_EQ(taken[8], 1.0F);
    shape[0] = 6;
    EXPECT_THAT(call.Take(0, result), HasSubstr("equally many rows"));
  }
}

}  // namespace
}  // namespace hvd::frameworks::jax
