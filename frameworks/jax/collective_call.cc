#include "frameworks/jax/collective_call.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace hvd::frameworks::jax {
namespace {

struct Type {
  XlaType xla;
  int32_t hvd;
  size_t bytes;
  bool is_only_moved =
      false;  // the runtime lacks it: moved as a type of the same size, not reduced
};

constexpr Type kTypes[] = {
    {XlaType::kPred, HVD_BOOL, 1},       {XlaType::kS8, HVD_INT8, 1},
    {XlaType::kS16, HVD_INT16, 2},       {XlaType::kS32, HVD_INT32, 4},
    {XlaType::kS64, HVD_INT64, 8},       {XlaType::kU8, HVD_UINT8, 1},
    {XlaType::kU16, HVD_INT16, 2, true}, {XlaType::kU32, HVD_INT32, 4, true},
    {XlaType::kU64, HVD_INT64, 8, true}, {XlaType::kF16, HVD_FLOAT16, 2},
    {XlaType::kBf16, HVD_BFLOAT16, 2},   {XlaType::kF32, HVD_FLOAT32, 4},
    {XlaType::kF64, HVD_FLOAT64, 8},
};

bool Reduces(int32_t op) { return op == HVD_ALLREDUCE || op == HVD_REDUCESCATTER; }

// nullptr: the operation does not support the type.
const Type* Find(XlaType type, int32_t op) {
  const bool only_moves = !Reduces(op);
  const auto* const found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                         [&](const Type& each) { return each.xla == type; });
  return found == std::end(kTypes) || (found->is_only_moved && !only_moves) ? nullptr : found;
}

// nullptr: there is no attribute of that name, or it is of another kind.
const void* FindAttribute(const XlaAttributes& attributes, std::string_view name,
                          XlaAttributeKind kind) {
  for (int64_t i = 0; i < attributes.size; ++i) {
    const XlaByteSpan& own = *attributes.names[i];
    if (std::string_view(own.data, own.size) == name) {
      return attributes.kinds[i] == kind ? attributes.values[i] : nullptr;
    }
  }
  return nullptr;
}

template <typename Value>
bool ReadScalar(const XlaAttributes& attributes, std::string_view name, XlaType type,
                Value* value) {
  const auto* const scalar =
      static_cast<const XlaScalar*>(FindAttribute(attributes, name, XlaAttributeKind::kScalar));
  if (scalar == nullptr || scalar->dtype != type) return false;
  std::memcpy(value, scalar->value, sizeof(*value));
  return true;
}

bool ReadInt(const XlaAttributes& attributes, std::string_view name, int32_t* value) {
  int64_t wide = 0;
  if (!ReadScalar(attributes, name, XlaType::kS64, &wide)) return false;
  // MLIR's integer attributes have 64 bits; all of these are small.
  *value = static_cast<int32_t>(wide);
  return true;
}

bool ReadString(const XlaAttributes& attributes, std::string_view name, std::string* value) {
  const auto* const span =
      static_cast<const XlaByteSpan*>(FindAttribute(attributes, name, XlaAttributeKind::kString));
  if (span == nullptr) return false;
  value->assign(span->data, span->size);
  return true;
}

// Whether the result has the input's shape, so that the runtime can write it to XLA's buffer. The
// shape of any other result depends on the other ranks, and the program may have been compiled for
// another number of ranks. So the runtime allocates such a result, and Take() checks and copies it.
bool HasResultOfKnownShape(int32_t op) { return op == HVD_ALLREDUCE || op == HVD_BROADCAST; }

bool IsFloating(int32_t dtype) {
  return dtype == HVD_FLOAT16 || dtype == HVD_BFLOAT16 || dtype == HVD_FLOAT32 ||
         dtype == HVD_FLOAT64;
}

// As reduces_on_devices in horovod.common.collective_kinds, which says it for eager operations.
bool ReducesOnDevices(const hvd_request& request) {
  if (request.reduction == HVD_ADASUM) return false;
  const bool is_average = request.reduction == HVD_AVERAGE;
  const bool is_scaled = is_average || request.prescale != 1.0 || request.postscale != 1.0;
  return !is_scaled || (IsFloating(request.dtype) && (is_average || request.reduction == HVD_SUM));
}

size_t ByteCount(const XlaBuffer& buffer, int32_t op) {
  size_t bytes = Find(buffer.dtype, op)->bytes;
  for (int64_t i = 0; i < buffer.rank; ++i) bytes *= static_cast<size_t>(buffer.dims[i]);
  return bytes;
}

}  // namespace

std::string CollectiveCall::Read(const XlaCallFrame& frame, Memory memory) {
  const XlaAttributes& attributes = frame.attributes;
  hvd_request common{};
  common.device = HVD_HOST;
  int32_t is_group = 0;
  const bool has_all = ReadInt(attributes, "op", &common.op) &&
                       ReadInt(attributes, "reduction", &common.reduction) &&
                       ReadInt(attributes, "root_rank", &common.root_rank) &&
                       ReadInt(attributes, "process_set", &process_set_) &&
                       ReadInt(attributes, "is_group", &is_group) &&
                       ReadScalar(attributes, "prescale", XlaType::kF64, &common.prescale) &&
                       ReadScalar(attributes, "postscale", XlaType::kF64, &common.postscale) &&
                       ReadString(attributes, "name", &name_);
  // Checked, because a compiled program may come from JAX's cache on disk, written by an older
  // version.
  const int64_t count = frame.results.size - 1;
  if (!has_all || count < 1 || frame.arguments.size < count) {
    return "the program was compiled with another version of Horovod";
  }
  for (int64_t i = 1; i <= count; ++i) {
    names_.push_back(
        is_group == 0 ? name_ : name_ + "_" + std::to_string(i) + "of" + std::to_string(count));
  }
  // The extra result, which only orders XLA's calls. It is written so that the memory is
  // initialized; on a device that would take a kernel, and nobody reads it.
  if (memory == Memory::kHost) *static_cast<char*>(frame.results.buffers[count]->data) = 0;
  return ReadTensors(frame, common);
}

std::string CollectiveCall::ReadTensors(const XlaCallFrame& frame, const hvd_request& common) {
  for (size_t i = 0; i < names_.size(); ++i) {
    const XlaBuffer& in = *frame.arguments.buffers[i];
    const XlaBuffer& out = *frame.results.buffers[i];
    const Type* const type = Find(in.dtype, common.op);
    if (type == nullptr || out.dtype != in.dtype) {
      return name_ + ": arrays of this type are not supported";
    }
    hvd_request request = common;
    request.name = names_[i].c_str();
    request.dtype = type->hvd;
    request.ndim = static_cast<int32_t>(in.rank);
    request.shape = in.dims;
    request.input = in.data;
    request.output = HasResultOfKnownShape(common.op) ? out.data : nullptr;
    requests_.push_back(request);
    arguments_.push_back(&in);
    results_.push_back(&out);
  }
  return "";
}

bool CollectiveCall::IsForDevices() const {
  return std::all_of(requests_.begin(), requests_.end(), [](const hvd_request& request) {
    return !Reduces(request.op) || ReducesOnDevices(request);
  });
}

void CollectiveCall::UseDevice(int32_t device, void* ready) {
  for (size_t i = 0; i < requests_.size(); ++i) {
    hvd_request& request = requests_[i];
    request.device = device;
    request.ready_event = ready;
    // The runtime checks the size, so a program compiled for another number of ranks is not
    // written beyond its memory.
    request.output_bytes = static_cast<int64_t>(result_bytes(static_cast<int>(i)));
    request.output = request.output_bytes > 0 ? results_[i]->data : nullptr;
  }
}

void CollectiveCall::UseHost(int index, void* copy) {
  hvd_request& request = requests_[index];
  request.input = copy;
  request.output = HasResultOfKnownShape(request.op) ? copy : nullptr;
}

size_t CollectiveCall::input_bytes(int index) const {
  return ByteCount(*arguments_[index], requests_[index].op);
}

size_t CollectiveCall::result_bytes(int index) const {
  return ByteCount(*results_[index], requests_[index].op);
}

std::string CollectiveCall::CheckShape(int index, const hvd_tensor& result) const {
  const XlaBuffer& wanted = *results_[index];
  if (result.ndim == wanted.rank &&
      std::equal(result.shape, result.shape + result.ndim, wanted.dims)) {
    return "";
  }
  return std::string(requests_[index].name) +
         ": within jit all ranks must give equally many rows, and there must be as many ranks as "
         "when the program was compiled; neither matters outside of jit";
}

std::string CollectiveCall::Take(int index, const hvd_tensor& result) const {
  std::string wrong = CheckShape(index, result);
  if (wrong.empty() && result.data != result_buffer(index)) {
    const size_t bytes = result_bytes(index);
    if (bytes > 0) std::memcpy(result_buffer(index), result.data, bytes);
  }
  return wrong;
}

}  // namespace hvd::frameworks::jax
