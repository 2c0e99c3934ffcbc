#include "collectives/adasum/adasum.h"

#include <algorithm>
#include <memory>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "collectives/dispatch.h"

namespace hvd {
namespace {

template <typename T>
double Load(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return value;
  } else {
    return value.ToFloat();
  }
}

template <typename T>
T Store(double value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    return T::FromFloat(static_cast<float>(value));
  }
}

// How much of a vector is kept: none of it counts if it is zero, and then neither does the factor.
double Factor(double dot, double norm_squared) {
  return norm_squared > 0 ? 1 - dot / (2 * norm_squared) : 1;
}

// out = adasum(a, b); out may be a or b.
template <typename T>
void Combine(const T* a, const T* b, T* out, size_t count) {
  double dot = 0, norm_a = 0, norm_b = 0;
  for (size_t i = 0; i < count; ++i) {
    const double x = Load(a[i]), y = Load(b[i]);
    dot += x * y;
    norm_a += x * x;
    norm_b += y * y;
  }
  const double factor_a = Factor(dot, norm_a), factor_b = Factor(dot, norm_b);
  for (size_t i = 0; i < count; ++i) {
    out[i] = Store<T>(factor_a * Load(a[i]) + factor_b * Load(b[i]));
  }
}

template <typename T>
absl::Status Run(Communicator& communicator, T* data, size_t count, const CallOptions& options) {
  const absl::Time deadline = Clock::Real().Now() + options.timeout;
  const std::unique_ptr<T[]> theirs(new T[count]);
  for (int distance = 1; distance < communicator.size(); distance *= 2) {
    const int peer = communicator.rank() ^ distance;
    const CallOptions remaining = {std::max(deadline - Clock::Real().Now(), absl::ZeroDuration())};
    RETURN_IF_ERROR(
        communicator.SendReceive(peer, data, theirs.get(), count * sizeof(T), remaining));
    // The lower rank's vector comes first on both sides, so that both round alike.
    const bool first = communicator.rank() < peer;
    Combine<T>(first ? data : theirs.get(), first ? theirs.get() : data, data, count);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AdasumAllReduce(Communicator& communicator, void* data, size_t count, DataType type,
                             const CallOptions& options) {
  const int size = communicator.size();
  if ((size & (size - 1)) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("Adasum needs a number of ranks that is a power of two, not ", size));
  }
  return Dispatch(type, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::Type;
    if constexpr (std::is_integral_v<T> || std::is_same_v<T, BoolByte>) {
      return absl::UnimplementedError(absl::StrCat("Adasum is for floating point tensors, not for ",
                                                   std::string(NameOf(type))));
    } else {
      return Run(communicator, static_cast<T*>(data), count, options);
    }
  });
}

}  // namespace hvd
