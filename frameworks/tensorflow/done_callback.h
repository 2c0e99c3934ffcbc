// The done callback of an asynchronous TensorFlow kernel, with its lifetime extended.
//
// TensorFlow (2.13 to 2.21 at least) passes a C kernel the address of a std::function in the frame
// of the function that calls it, so the pointer dangles once the kernel's compute function has
// returned. TakeDone moves the function out of that frame. This relies on the type, which is in
// TensorFlow's public C++ headers, and on libstdc++'s layout of std::function; both are checked
// before the move.
#ifndef FRAMEWORKS_TENSORFLOW_DONE_CALLBACK_H_
#define FRAMEWORKS_TENSORFLOW_DONE_CALLBACK_H_

#include <functional>
#include <string>
#include <vector>

#include "frameworks/tensorflow/tensorflow_abi.h"

namespace hvd::frameworks::tensorflow {

// A range of addresses of machine code: from `begin` up to, but not including, `end`.
struct CodeRange {
  const char* begin;
  const char* end;
};

// The executable segments of all libraries in this process whose path contains `part`.
std::vector<CodeRange> CodeOf(const std::string& part);

// Moves the function out of `done`. Returns an empty function if `done` does not look like a
// libstdc++ std::function whose code lies in one of `code`; then `done` is unchanged, and is valid
// until compute returns.
std::function<void()> TakeDone(TF_AsyncOpKernelDoneCallback* done,
                               const std::vector<CodeRange>& code);

}  // namespace hvd::frameworks::tensorflow

#endif  // FRAMEWORKS_TENSORFLOW_DONE_CALLBACK_H_
