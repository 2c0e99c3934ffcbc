// The definitions of our operations for TensorFlow's graphs: their inputs, attributes and shapes.
#ifndef FRAMEWORKS_TENSORFLOW_OPERATIONS_H_
#define FRAMEWORKS_TENSORFLOW_OPERATIONS_H_

#include <string>
#include <vector>

#include "worker_runtime/api/hvd_c_api.h"

namespace hvd::frameworks::tensorflow {

struct OperationDefinition {
  const char* name;
  int op;  // of the runtime
  const char* types;
  std::vector<const char*> inputs;
  std::vector<const char*> outputs;
  bool reduces = false;
};

// All of them. The attributes are those of Attributes: tensor_name, process_set and waits; of what reduces
// also reduction, prescale_factor and postscale_factor; of a broadcast root_rank.
const std::vector<OperationDefinition>& Operations();

// Registers them with TensorFlow. Returns the first error, or "".
std::string RegisterOperations();

}  // namespace hvd::frameworks::tensorflow

#endif  // FRAMEWORKS_TENSORFLOW_OPERATIONS_H_
