// Data movement over two in-process ranks without negotiation; engine_test.cc has the rest.
#include "worker_runtime/engine/executor.h"

#include <thread>

#include "collectives/inproc/inproc_backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::worker_runtime::engine {
namespace {

using ::testing::ElementsAre;

class NoKeyExchange : public collectives::KeyExchange {
 public:
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view, absl::string_view,
                                                     absl::Duration) override {
    return absl::UnimplementedError("not here");
  }
};

// A tensor in place, as a part and as a plan.
struct Tensor {
  Tensor(std::vector<float> values, negotiation::Reduction reduction, double prescale)
      : data(std::move(values)), operation(std::make_shared<Operation>()) {
    TensorRequest request;
    request.name = "x";
    request.shape = {static_cast<int64_t>(data.size())};
    request.reduction = reduction;
    request.prescale = prescale;
    request.input = request.output = data.data();
    operation->requests = {request};
    operation->results.resize(1);
    operation->unfinished = 1;
    planned.signature = std::make_shared<const negotiation::TensorSignature>(request);
  }
  std::vector<float> data;
  OperationPtr operation;
  negotiation::PlannedTensor planned;
};

class ExecutorTest : public testing::Test {
 protected:
  // Runs a batch on both ranks; rank 1 is absent from the tensors that `absent` names.
  void RunBatch(std::vector<Tensor>& mine, std::vector<Tensor>& theirs, std::vector<bool> absent) {
    std::thread other([&] { RunOn(1, theirs, absent); });
    RunOn(0, mine, std::vector<bool>(mine.size(), false));
    other.join();
  }

 private:
  void RunOn(int rank, std::vector<Tensor>& tensors, const std::vector<bool>& absent) {
    NoKeyExchange keys;
    auto communicator = backend_->Connect({Epoch(1), rank, 2, "", "s"}, keys, absl::Seconds(60));
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    negotiation::Batch batch;
    Executor::Parts parts;
    for (size_t i = 0; i < tensors.size(); ++i) {
      batch.push_back(tensors[i].planned);
      parts.emplace_back();
      if (!absent[i]) parts.back() = OperationTensor{tensors[i].operation, 0};
    }
    timeline::Recorder recorder;
    Executor executor(**communicator, absl::Seconds(60), recorder, 0);
    EXPECT_EQ(executor.Run(batch, parts), absl::OkStatus());
  }
  const std::unique_ptr<collectives::Backend> backend_ = collectives::inproc::MakeInprocBackend();
};

std::vector<Tensor> Two(negotiation::Reduction reduction, double prescale) {
  std::vector<Tensor> tensors;
  tensors.emplace_back(std::vector<float>{2, 4}, reduction, prescale);
  tensors.emplace_back(std::vector<float>{6}, reduction, prescale);
  return tensors;
}

TEST_F(ExecutorTest, Fused_PartlyAbsentRank_GivesWhatChangesNothing) {
  auto mine = Two(negotiation::Reduction::kMin, 0.5),
       theirs = Two(negotiation::Reduction::kMin, 0.5);
  theirs[0].data = {100, 0};
  RunBatch(mine, theirs, {false, true});
  EXPECT_THAT(mine[0].data, ElementsAre(1, 0));
  EXPECT_THAT(mine[1].data, ElementsAre(3));
  EXPECT_THAT(theirs[0].data, ElementsAre(1, 0));
  EXPECT_THAT(theirs[1].data, ElementsAre(6)) << "an absent rank's memory was touched";
  EXPECT_THAT(mine[1].operation->results[0].shape, ElementsAre(1));
}

TEST_F(ExecutorTest, Alone_AbsentRank_GivesZeros) {
  std::vector<Tensor> mine, theirs;
  mine.emplace_back(std::vector<float>{2, 4}, negotiation::Reduction::kAverage, 1.0);
  theirs.emplace_back(std::vector<float>{9, 9}, negotiation::Reduction::kAverage, 1.0);
  RunBatch(mine, theirs, {true});
  EXPECT_THAT(mine[0].data, ElementsAre(1, 2));
  EXPECT_THAT(theirs[0].data, ElementsAre(9, 9));
}

}  // namespace
}  // namespace hvd::worker_runtime::engine
