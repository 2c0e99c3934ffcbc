// The kernels of our operations, one for each kind of device. Data is in host memory: TensorFlow
// copies it from a device and back.
#ifndef FRAMEWORKS_TENSORFLOW_KERNELS_H_
#define FRAMEWORKS_TENSORFLOW_KERNELS_H_

#include <string>

namespace hvd::frameworks::tensorflow {

// Registers them with TensorFlow. Returns the first error, or "".
//
// Kernels don't block a thread of TensorFlow's, unless the callback that ends them is not what
// done_callback.h expects; then they wait for it, and the first one says so on stderr.
std::string RegisterKernels();

// For tests: from now on all kernels wait.
void LetKernelsWait();

}  // namespace hvd::frameworks::tensorflow

#endif  // FRAMEWORKS_TENSORFLOW_KERNELS_H_
