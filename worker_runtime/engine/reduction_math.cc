#include "worker_runtime/engine/reduction_math.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "collectives/scale.h"
#include "collectives/type_dispatch.h"

namespace hvd::worker_runtime::engine {
namespace {

// Divides as integers. Multiplying by 1.0 / ranks is not exact: 49 * (1.0 / 49) is less than 1.
void DivideIntegers(void* data, size_t count, collectives::DataType type, int ranks) {
  collectives::Dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    if constexpr (std::is_integral_v<T>) {
      T* elements = static_cast<T*>(data);
      for (size_t i = 0; i < count; ++i) {
        elements[i] = static_cast<T>(static_cast<int64_t>(elements[i]) / ranks);
      }
    }
  });
}

enum class Neutral { kZero, kOne, kLargest, kSmallest };

Neutral NeutralOf(negotiation::Reduction reduction) {
  switch (reduction) {
    case negotiation::Reduction::kMin:
      return Neutral::kLargest;
    case negotiation::Reduction::kMax:
      return Neutral::kSmallest;
    case negotiation::Reduction::kProduct:
      return Neutral::kOne;
    case negotiation::Reduction::kAverage:
    case negotiation::Reduction::kSum:
    case negotiation::Reduction::kAdasum:
      break;
  }
  return Neutral::kZero;
}

template <typename T>
T NeutralElement(Neutral neutral) {
  using Limits = std::numeric_limits<T>;
  switch (neutral) {
    case Neutral::kOne:
      return T(1);
    // Infinity, not the largest finite number: the minimum of infinities must be infinite.
    case Neutral::kLargest:
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
    case Neutral::kSmallest:
      return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case Neutral::kZero:
      break;
  }
  return T(0);
}

}  // namespace

collectives::ReduceOp ToReduceOp(negotiation::Reduction reduction) {
  switch (reduction) {
    case negotiation::Reduction::kMin:
      return collectives::ReduceOp::kMin;
    case negotiation::Reduction::kMax:
      return collectives::ReduceOp::kMax;
    case negotiation::Reduction::kProduct:
      return collectives::ReduceOp::kProduct;
    case negotiation::Reduction::kAverage:
    case negotiation::Reduction::kSum:
    case negotiation::Reduction::kAdasum:
      break;
  }
  return collectives::ReduceOp::kSum;
}

double FactorOfSum(negotiation::Reduction reduction, double scale, int ranks) {
  // One multiplication in place of two, so that 16-bit floats are rounded once.
  return reduction == negotiation::Reduction::kAverage ? scale / ranks : scale;
}

bool NeedsWideSum(negotiation::Reduction reduction, collectives::DataType type) {
  return reduction == negotiation::Reduction::kAverage && !collectives::IsFloating(type) &&
         type != collectives::DataType::kBool && type != collectives::DataType::kInt64;
}

void Widen(const void* from, size_t count, collectives::DataType type, int64_t* to) {
  collectives::Dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    if constexpr (std::is_integral_v<T>) std::copy_n(static_cast<const T*>(from), count, to);
  });
}

void Narrow(const int64_t* from, size_t count, collectives::DataType type, void* to) {
  collectives::Dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    if constexpr (std::is_integral_v<T>) {
      std::transform(from, from + count, static_cast<T*>(to),
                     [](int64_t number) { return static_cast<T>(number); });
    }
  });
}

void FinishReduction(void* data, size_t count, collectives::DataType type,
                     negotiation::Reduction reduction, double postscale, int ranks) {
  // The average of booleans is their sum, a logical "or", which is not divided.
  const bool average = reduction == negotiation::Reduction::kAverage && ranks > 1 &&
                       type != collectives::DataType::kBool;
  if (average && postscale == 1.0 && !collectives::IsFloating(type)) {
    DivideIntegers(data, count, type, ranks);
    return;
  }
  const double factor = average ? FactorOfSum(reduction, postscale, ranks) : postscale;
  if (factor != 1.0) collectives::Scale(data, count, type, factor);
}

void FillNeutral(void* data, size_t count, collectives::DataType type,
                 negotiation::Reduction reduction) {
  const Neutral neutral = NeutralOf(reduction);
  collectives::Dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    T element;
    if constexpr (std::is_same_v<T, collectives::BoolByte>) {
      element.value = neutral == Neutral::kOne || neutral == Neutral::kLargest ? 1 : 0;
    } else if constexpr (std::is_arithmetic_v<T>) {
      element = NeutralElement<T>(neutral);
    } else {
      // numeric_limits knows nothing of 16-bit floats; 0, 1 and the infinities are exact in them.
      element = T::FromFloat(NeutralElement<float>(neutral));
    }
    std::fill_n(static_cast<T*>(data), count, element);
  });
}

}  // namespace hvd::worker_runtime::engine
