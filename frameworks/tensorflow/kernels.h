// The TensorFlow kernels of Horovod's operations, for each kind of device. They work on host
// memory: TensorFlow copies tensors from a device and back.
#ifndef FRAMEWORKS_TENSORFLOW_KERNELS_H_
#define FRAMEWORKS_TENSORFLOW_KERNELS_H_

#include <string>

namespace hvd::frameworks::tensorflow {

// Registers the kernels with TensorFlow. Returns the first error, or "".
//
// Kernels don't block TensorFlow's threads, unless TakeDone (done_callback.h) fails. Then a kernel
// blocks until its operation has ended, and the first one writes a warning to stderr.
std::string RegisterKernels();

// For tests: makes all kernels block from now on, as if TakeDone failed.
void LetKernelsWait();

}  // namespace hvd::frameworks::tensorflow

#endif  // FRAMEWORKS_TENSORFLOW_KERNELS_H_
