// The XLA custom call for collectives in functions that TensorFlow compiles with XLA.
//
// XLA's registry of custom calls has a C++ interface only, so its functions are looked up by their
// mangled names in libtensorflow_cc.so.2, which has them in all versions from 2.13 to 2.21.
#ifndef FRAMEWORKS_TENSORFLOW_XLA_CALL_H_
#define FRAMEWORKS_TENSORFLOW_XLA_CALL_H_

#include <string>
#include <vector>

#include "worker_runtime/api/hvd_c_api.h"

namespace hvd::frameworks::tensorflow {

// The parsed description of a custom call. In the text, fields are separated by one space:
//   OP REDUCTION PRESCALE POSTSCALE ROOT_RANK PROCESS_SET COUNT, then for each of COUNT tensors
//   DTYPE NDIM DIMS...,
// then a space and the operation's name, which may contain spaces. Numbers of operations,
// reductions and types are the runtime's.
struct XlaOperation {
  std::string name;
  int op = HVD_ALLREDUCE;
  int reduction = HVD_SUM;
  double prescale = 1;
  double postscale = 1;
  int root_rank = 0;
  int process_set = 0;
  struct Tensor {
    int type = HVD_FLOAT32;
    std::vector<int64_t> dims;
  };
  std::vector<Tensor> tensors;
};

// Returns false if `text` is not such a description.
bool ParseXlaOperation(const std::string& text, XlaOperation* operation);

// Registers the custom call target "hvd_collective" for the host. Returns an error, or "".
std::string RegisterXlaCall();

}  // namespace hvd::frameworks::tensorflow

#endif  // FRAMEWORKS_TENSORFLOW_XLA_CALL_H_
