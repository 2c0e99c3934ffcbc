#include "frameworks/tensorflow/kernels.h"

#include <atomic>
#include <cstdio>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frameworks/runtime_library.h"
#include "frameworks/tensorflow/collective_call.h"
#include "frameworks/tensorflow/done_callback.h"
#include "frameworks/tensorflow/operations.h"
#include "frameworks/tensorflow/tensorflow_library.h"

namespace hvd::frameworks::tensorflow {
namespace {

constexpr int kFailedPrecondition = 9;
constexpr char kNotImported[] = "this operation needs `import horovod.tensorflow`";
constexpr const char* kDevices[] = {"CPU", "GPU", "XPU"};

std::atomic<bool> all_wait{false};
std::atomic<bool> has_said_so{false};

// Cached, since one look-up of the loaded libraries takes a millisecond.
const std::vector<CodeRange>& CodeOfTensorFlow() {
  static const auto* const code = new std::vector<CodeRange>(CodeOf("tensorflow"));
  return *code;
}

void GetName(TF_OpKernelConstruction* construction, std::string* name, TF_Status* status) {
  int32_t list = 0, bytes = 0;
  Tf().OpKernelConstruction_GetAttrSize(construction, "tensor_name", &list, &bytes, status);
  if (Tf().GetCode(status) != kTfOk) return;
  name->resize(bytes);
  Tf().OpKernelConstruction_GetAttrString(construction, "tensor_name", name->data(), name->size(),
                                          status);
}

std::string ReadAttributes(TF_OpKernelConstruction* construction,
                           const OperationDefinition& definition, Attributes* attributes) {
  const Status status;
  const auto read_int = [&](const char* name, int32_t* value) {
    if (status.ok()) {
      Tf().OpKernelConstruction_GetAttrInt32(construction, name, value, status.get());
    }
  };
  const auto read_float = [&](const char* name, float* value) {
    if (status.ok()) {
      Tf().OpKernelConstruction_GetAttrFloat(construction, name, value, status.get());
    }
  };
  attributes->op = definition.op;
  GetName(construction, &attributes->name, status.get());
  read_int("process_set", &attributes->process_set);
  read_int("waits", &attributes->waits);
  if (definition.reduces) {
    read_int("reduction", &attributes->reduction);
    read_float("prescale_factor", &attributes->prescale);
    read_float("postscale_factor", &attributes->postscale);
  }
  if (definition.op == HVD_BROADCAST) read_int("root_rank", &attributes->root_rank);
  return status.ok() ? "" : status.message();
}

// One function per operation, because TensorFlow's create callback has no user data.
template <size_t kIndex>
void* Create(TF_OpKernelConstruction* construction) {
  auto attributes = std::make_unique<Attributes>();
  const std::string error = ReadAttributes(construction, Operations()[kIndex], attributes.get());
  if (!error.empty()) {
    const Status status(kFailedPrecondition, error);
    Tf().OpKernelConstruction_Failure(construction, status.get());
  }
  // Also after a failure: TensorFlow passes whatever it gets here to Destroy.
  return attributes.release();
}

void Destroy(void* kernel) { delete static_cast<Attributes*>(kernel); }

// The fallback if the done callback can't be moved: it is valid only until compute returns, so
// compute must not return before the operation has ended.
void RunAndWait(const Attributes& attributes, TF_OpKernelContext* context,
                TF_AsyncOpKernelDoneCallback* done) {
  std::promise<void> ended;
  CollectiveCall::Start(attributes, context, [&ended] { ended.set_value(); });
  ended.get_future().wait();
  Tf().RunAsyncOpKernelDoneCallback(done);
}

// Returns at once where possible, so that ranks may run operations in different orders even on one
// thread: a kernel that blocks could keep TensorFlow from starting the operation that other ranks
// wait for.
void Compute(void* kernel, TF_OpKernelContext* context, TF_AsyncOpKernelDoneCallback* done) {
  const auto& attributes = *static_cast<const Attributes*>(kernel);
  if (Runtime() == nullptr) {
    const Status status(kFailedPrecondition, ErrorText(HVD_FAILED_PRECONDITION, kNotImported));
    Tf().OpKernelContext_Failure(context, status.get());
    return Tf().RunAsyncOpKernelDoneCallback(done);
  }
  if (all_wait.load()) return RunAndWait(attributes, context, done);
  std::function<void()> own = TakeDone(done, CodeOfTensorFlow());
  if (own) return CollectiveCall::Start(attributes, context, std::move(own));
  if (!has_said_so.exchange(true)) {
    fprintf(stderr,
            "horovod.tensorflow: unknown build of TensorFlow, so each operation in flight blocks "
            "one of its threads: call set_inter_op_parallelism_threads with at least the number "
            "of operations that run at once.\n");
  }
  RunAndWait(attributes, context, done);
}

using CreateFunction = void* (*)(TF_OpKernelConstruction*);

template <size_t... kIndices>
std::vector<CreateFunction> CreateFunctions(std::index_sequence<kIndices...>) {
  return {&Create<kIndices>...};
}

std::string ArgumentName(const char* spec) {
  const std::string text = spec;
  return text.substr(0, text.find(':'));
}

std::string Register(const OperationDefinition& definition, CreateFunction create,
                     const std::string& device) {
  TF_KernelBuilder* const builder =
      Tf().NewAsyncKernelBuilder(definition.name, device.c_str(), create, &Compute, &Destroy);
  // Declares all inputs and outputs as host memory, so that TensorFlow copies them from and to the
  // device.
  if (device != "CPU") {
    for (const auto* arguments : {&definition.inputs, &definition.outputs}) {
      for (const char* spec : *arguments) {
        Tf().KernelBuilder_HostMemory(builder, ArgumentName(spec).c_str());
      }
    }
  }
  const Status status;
  Tf().RegisterKernelBuilder((definition.name + device).c_str(), builder, status.get());
  return status.ok() ? "" : status.message();
}

}  // namespace

std::string RegisterKernels() {
  constexpr size_t kCount = 6;
  if (Operations().size() != kCount) return "the number of operations is wrong";
  const std::vector<CreateFunction> create = CreateFunctions(std::make_index_sequence<kCount>());
  for (size_t i = 0; i < kCount; ++i) {
    for (const char* device : kDevices) {
      if (std::string error = Register(Operations()[i], create[i], device); !error.empty()) {
        return error;
      }
    }
  }
  return "";
}

void LetKernelsWait() { all_wait.store(true); }

}  // namespace hvd::frameworks::tensorflow
