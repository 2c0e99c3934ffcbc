// Adasum, an adaptive sum of gradients: it avoids the overshoot of a plain sum of similar
// gradients. From S. Maleki, M. Musuvathi, T. Mytkowicz, O. Saarikivi, T. Xu, V. Eksarevskiy,
// J. Ekanayake, E. Barsoum, "Scaling Distributed Training with Adaptive Summation", 2020.
//
// Two gradients a and b are combined to
//   (1 - a.b / (2 |a|^2)) a + (1 - a.b / (2 |b|^2)) b
// which is their sum if they are orthogonal and their mean if they are parallel. More than two
// gradients are combined in a binary tree: neighbouring ranks first, then pairs with pairs, and so
// on. If the number of ranks is not a power of two, the first ranks are combined in one additional
// level.
#ifndef COLLECTIVES_ADASUM_ADASUM_H_
#define COLLECTIVES_ADASUM_ADASUM_H_

#include <cstddef>

#include "absl/status/status.h"
#include "collectives/communicator.h"

namespace hvd::collectives::adasum {

// Combines one tensor of all ranks in place. The factors are computed per tensor, so fused tensors
// must be passed one by one. The result is bitwise equal on all ranks. Calls only
// communicator.SendReceive(): log2(size) times, and twice more if the number of ranks is not a
// power of two.
// Errors:
//   - Unimplemented: `type` is not a floating point type; the communicator stays usable and `data`
//     is unchanged.
//   - Others: those of Communicator.
absl::Status AdasumAllReduce(Communicator& communicator, void* data, size_t count, DataType type,
                             const CallOptions& options);

}  // namespace hvd::collectives::adasum

#endif  // COLLECTIVES_ADASUM_ADASUM_H_
