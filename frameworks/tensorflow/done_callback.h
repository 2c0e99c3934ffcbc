// The callback that ends an asynchronous kernel of TensorFlow, kept until the kernel has ended.
//
// TensorFlow (2.13 to 2.21 at least) hands a C kernel the address of a std::function that is a
// parameter of its own frame: once the kernel's compute function has returned, it dangles. So the
// function is moved out of there, which relies on libstdc++'s layout of a std::function; the type is
// in TensorFlow's public C++ headers. What is moved is checked first.
#ifndef FRAMEWORKS_TENSORFLOW_DONE_CALLBACK_H_
#define FRAMEWORKS_TENSORFLOW_DONE_CALLBACK_H_

#include <functional>
#include <string>
#include <vector>

#include "frameworks/tensorflow/tensorflow_abi.h"

namespace hvd::frameworks::tensorflow {

// Where code lies: addresses from `begin` up to, not including, `end`.
struct CodeRange {
  const char* begin;
  const char* end;
};

// The executable segments of all libraries in this process whose path has `part` in it.
std::vector<CodeRange> CodeOf(const std::string& part);

// Moves the function out of `done`; an empty one if `done` can't be a libstdc++ std::function whose
// code lies in one of `code`: then `done` is as it was, and valid until compute returns.
std::function<void()> TakeDone(TF_AsyncOpKernelDoneCallback* done,
                               const std::vector<CodeRange>& code);

}  // namespace hvd::frameworks::tensorflow

#endif  // FRAMEWORKS_TENSORFLOW_DONE_CALLBACK_H_
