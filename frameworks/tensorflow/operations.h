// The definitions of Horovod's TensorFlow operations: inputs, outputs, attributes and shapes.
#ifndef FRAMEWORKS_TENSORFLOW_OPERATIONS_H_
#define FRAMEWORKS_TENSORFLOW_OPERATIONS_H_

#include <string>
#include <vector>

#include "worker_runtime/api/hvd_c_api.h"

namespace hvd::frameworks::tensorflow {

struct OperationDefinition {
  const char* name;
  int op;  // the runtime's operation
  const char* types;
  std::vector<const char*> inputs;
  std::vector<const char*> outputs;
  bool reduces = false;
};

// All operations. Each has the attributes tensor_name, process_set and waits; reductions also have
// reduction, prescale_factor and postscale_factor; a broadcast also has root_rank. See Attributes.
const std::vector<OperationDefinition>& Operations();

// Registers all operations with TensorFlow. Returns the first error, or "".
std::string RegisterOperations();

}  // namespace hvd::frameworks::tensorflow

#endif  // FRAMEWORKS_TENSORFLOW_OPERATIONS_H_
