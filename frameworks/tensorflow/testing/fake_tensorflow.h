// A fake libtensorflow_framework.so.2, for tests of the kernels under sanitizers, with which the
// real one can't be loaded. Its objects live no longer than the real ones: a kernel's done callback
// is in a frame that ends when compute returns, and kernel, context and tensors are destroyed once
// that callback has run.
#ifndef FRAMEWORKS_TENSORFLOW_TESTING_FAKE_TENSORFLOW_H_
#define FRAMEWORKS_TENSORFLOW_TESTING_FAKE_TENSORFLOW_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace hvd::frameworks::tensorflow {

// A vector of floats, or of int32 numbers, which are stored as floats.
struct Value {
  bool is_int32 = false;
  std::vector<float> elements;
};

// An operation in a graph. Missing attributes are 0; missing factors are 1.
struct Node {
  std::string operation;  // HorovodAllreduce, ...
  std::string tensor_name;
  std::map<std::string, int32_t> attributes;
  std::vector<Value> inputs;
};

struct Outcome {
  int code = 0;  // 0: ok
  std::string message;
  std::vector<Value> outputs;
};

// Makes the kernel that was registered for the node's operation on CPUs, and runs it. Calls
// `on_end` once, on the thread where the kernel ends. Thread-safe once the kernels are registered.
using RunNodeFunction = void(const Node& node, std::function<void(const Outcome&)> on_end);
extern "C" __attribute__((visibility("default"))) RunNodeFunction fake_tensorflow_run_node;

}  // namespace hvd::frameworks::tensorflow

#endif  // FRAMEWORKS_TENSORFLOW_TESTING_FAKE_TENSORFLOW_H_
