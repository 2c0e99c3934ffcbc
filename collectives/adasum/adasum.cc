#include "collectives/adasum/adasum.h"

#include <algorithm>
#include <memory>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collectives/type_dispatch.h"

namespace hvd::collectives::adasum {
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

// The factor of a vector in the sum, see adasum.h. For a zero vector the factor has no effect, and
// 1 avoids the division by zero.
double Factor(double dot, double norm_squared) {
  return norm_squared > 0 ? 1 - dot / (2 * norm_squared) : 1;
}

// out = adasum(a, b); `out` may equal `a` or `b`. The dot products are sums of doubles for all
// types: float16 would overflow.
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

// Exchanges whole vectors with one peer after another.
template <typename T>
class Exchanger {
 public:
  Exchanger(Communicator& communicator, T* data, size_t count, const CallOptions& options)
      : communicator_(communicator),
        data_(data),
        count_(count),
        options_(options),
        theirs_(new T[count]) {}

  absl::Status CombineWith(int peer) {
    RETURN_IF_ERROR(Exchange(peer));
    // The lower rank's vector comes first on both ranks, so that both round alike.
    const bool first = communicator_.rank() < peer;
    Combine<T>(first ? data_ : theirs_.get(), first ? theirs_.get() : data_, data_, count_);
    return absl::OkStatus();
  }

  absl::Status TakeFrom(int peer) {
    RETURN_IF_ERROR(Exchange(peer));
    std::copy_n(theirs_.get(), count_, data_);
    return absl::OkStatus();
  }

  absl::Status GiveTo(int peer) { return Exchange(peer); }

 private:
  absl::Status Exchange(int peer) {
    return communicator_.SendReceive(peer, data_, theirs_.get(), count_ * sizeof(T), options_);
  }

  Communicator& communicator_;
  T* const data_;
  const size_t count_;
  const CallOptions options_;
  const std::unique_ptr<T[]> theirs_;
};

// Recursive doubling over whole vectors. If the size is not a power of two, P + folded with P the
// largest power of two below, the first 2 * folded ranks are combined in pairs first. The even
// ranks of these pairs and all other ranks are P places, which are combined in log2(P) rounds:
// place p with place p XOR 2^k in round k. The odd ranks get the result at the end.
template <typename T>
absl::Status Run(Communicator& communicator, T* data, size_t count, const CallOptions& options) {
  const int rank = communicator.rank(), size = communicator.size();
  int places = 1;
  while (places * 2 <= size) places *= 2;
  const int folded = size - places;
  Exchanger<T> exchanger(communicator, data, count, options);
  if (rank < 2 * folded) RETURN_IF_ERROR(exchanger.CombineWith(rank ^ 1));
  if (rank < 2 * folded && rank % 2 == 1) return exchanger.TakeFrom(rank - 1);
  const int place = rank < 2 * folded ? rank / 2 : rank - folded;
  for (int distance = 1; distance < places; distance *= 2) {
    const int other = place ^ distance;
    RETURN_IF_ERROR(exchanger.CombineWith(other < folded ? 2 * other : other + folded));
  }
  return rank < 2 * folded ? exchanger.GiveTo(rank + 1) : absl::OkStatus();
}

}  // namespace

absl::Status AdasumAllReduce(Communicator& communicator, void* data, size_t count, DataType type,
                             const CallOptions& options) {
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

}  // namespace hvd::collectives::adasum
