// A stand-in for libtensorflow_framework.so.2, for tests of the kernels under sanitizers, which the real
// one doesn't load with. What it keeps of the real one is how long things live: the callback that ends
// a kernel lies in a frame that is gone once compute has returned, and kernel, context and tensors are
// gone once that callback has run.
#ifndef FRAMEWORKS_TENSORFLOW_TESTING_FAKE_TENSORFLOW_H_
#define FRAMEWORKS_TENSORFLOW_TESTING_FAKE_TENSORFLOW_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace hvd::frameworks::tensorflow {

// A vector of floats, or of int32 numbers, which are kept as floats here.
struct Value {
  bool is_int32 = false;
  std::vector<float> elements;
};

// An operation in a graph. Attributes that are missing are 0, or 1 for factors.
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

// Makes the kernel that was registered for it on CPUs and runs it. Calls `on_end` once, on whatever
// thread the kernel ends. Thread-safe once kernels are registered.
using RunNodeFunction = void(const Node& node, std::function<void(const Outcome&)> on_end);
extern "C" __attribute__((visibility("default"))) RunNodeFunction fake_tensorflow_run_node;

}  // namespace hvd::frameworks::tensorflow

#endif  // FRAMEWORKS_TENSORFLOW_TESTING_FAKE_TENSORFLOW_H_
