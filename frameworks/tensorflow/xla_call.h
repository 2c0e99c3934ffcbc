// A collective operation within a program that XLA has compiled: a custom call.
//
// XLA's registry of custom calls and the way to report an error are C++, and are found by their
// mangled names in libtensorflow_cc.so.2: there in all versions from 2.13 to 2.21.
#ifndef FRAMEWORKS_TENSORFLOW_XLA_CALL_H_
#define FRAMEWORKS_TENSORFLOW_XLA_CALL_H_

#include <string>
#include <vector>

#include "worker_runtime/api/hvd_c_api.h"

namespace hvd::frameworks::tensorflow {

// What a custom call's description says. Its fields are separated by one space:
//   OP REDUCTION PRESCALE POSTSCALE ROOT_RANK PROCESS_SET COUNT, then for each of COUNT tensors
//   DTYPE NDIM DIMS...,
// then a space and the operation's name, which may have spaces. Numbers are the runtime's.
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

// False: `text` is no such description.
bool ParseXlaOperation(const std::string& text, XlaOperation* operation);

// Registers the target "hvd_collective" for the host. Returns what is missing, or "".
std::string RegisterXlaCall();

}  // namespace hvd::frameworks::tensorflow

#endif  // FRAMEWORKS_TENSORFLOW_XLA_CALL_H_
