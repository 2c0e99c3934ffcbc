#include "frameworks/tensorflow/xla_call.h"

#include <dlfcn.h>

#include <cstring>
#include <exception>
#include <numeric>
#include <optional>
#include <sstream>

#include "frameworks/runtime_library.h"

namespace hvd::frameworks::tensorflow {
namespace {

constexpr char kLibrary[] = "libtensorflow_cc.so.2";
constexpr char kTarget[] = "hvd_collective";
// Bounds what a description can make this library allocate: it may be of another version of
// Horovod, from a saved program.
constexpr size_t kMostTensors = 1 << 20;
constexpr int kMostDims = 64;

// xla::CustomCallTargetRegistry::Global() and ::Register(name, function, platform).
constexpr char kGlobal[] = "_ZN3xla24CustomCallTargetRegistry6GlobalEv";
constexpr char kRegister[] =
    "_ZN3xla24CustomCallTargetRegistry8RegisterERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIc"
    "EEEPvS8_";
using GlobalFunction = void* (*)();
using RegisterFunction = void (*)(void*, const std::string&, void*, const std::string&);

std::vector<hvd_request> MakeRequests(const XlaOperation& operation,
                                      const std::vector<std::string>& names, void* out,
                                      const void** in) {
  const size_t count = operation.tensors.size();
  std::vector<hvd_request> requests(count);
  for (size_t i = 0; i < count; ++i) {
    hvd_request& request = requests[i];
    request = hvd_request{};
    request.name = names[i].c_str();
    request.op = operation.op;
    request.dtype = operation.tensors[i].type;
    request.ndim = static_cast<int32_t>(operation.tensors[i].dims.size());
    request.shape = operation.tensors[i].dims.data();
    request.reduction = operation.reduction;
    request.prescale = operation.prescale;
    request.postscale = operation.postscale;
    request.root_rank = operation.root_rank;
    request.device = HVD_HOST;
    request.input = in[i];
    // XLA passes a single result as the buffer itself, several results as an array of buffers.
    request.output = count == 1 ? out : static_cast<void**>(out)[i];
  }
  return requests;
}

std::vector<std::string> NamesOf(const XlaOperation& operation) {
  const size_t count = operation.tensors.size();
  if (count == 1) return {operation.name};
  std::vector<std::string> names(count);
  for (size_t i = 0; i < count; ++i) {
    names[i] = operation.name + "_" + std::to_string(i + 1) + "of" + std::to_string(count);
  }
  return names;
}

// Blocks until the operation has ended, since XLA runs the calls of a program one after another.
// Returns an error, or "".
std::string Run(const XlaOperation& operation, void* out, const void** in) {
  const std::vector<std::string> names = NamesOf(operation);
  const std::vector<hvd_request> requests = MakeRequests(operation, names, out, in);
  int64_t handle = 0;
  int32_t code = Runtime()->submit(requests.data(), static_cast<int32_t>(requests.size()),
                                   operation.process_set, /*waits=*/1, &handle);
  if (code != HVD_OK) return ErrorText(code);
  do {
    code = Runtime()->wait(handle, /*seconds=*/1);
  } while (code == HVD_STILL_RUNNING);
  const std::string error = code == HVD_OK ? "" : ErrorText(code);
  Runtime()->release(handle);
  return error;
}

// The custom call, in the form of XLA's API_VERSION_STATUS_RETURNING_UNIFIED. `status` points to an
// XlaCustomCallStatus, whose only member is a std::optional<std::string>: the error, if there is
// one.
void Call(void* out, const void** in, const char* text, size_t size, void* status) {
  auto& failure = *static_cast<std::optional<std::string>*>(status);
  XlaOperation operation;
  // Exceptions must not cross XLA's compiled code. The likely one is std::bad_alloc.
  try {
    if (Runtime() == nullptr) {
      failure =
          ErrorText(HVD_FAILED_PRECONDITION, "this operation needs `import horovod.tensorflow`");
    } else if (!ParseXlaOperation(std::string(text, size), &operation)) {
      failure = ErrorText(HVD_FAILED_PRECONDITION, "the custom call's description can't be parsed");
    } else if (std::string error = Run(operation, out, in); !error.empty()) {
      failure = std::move(error);
    }
  } catch (const std::exception& error) {
    failure = ErrorText(HVD_RESOURCE_EXHAUSTED, error.what());
  }
}

}  // namespace

bool ParseXlaOperation(const std::string& text, XlaOperation* operation) {
  std::istringstream words(text);
  size_t count = 0;
  words >> operation->op >> operation->reduction >> operation->prescale >> operation->postscale >>
      operation->root_rank >> operation->process_set >> count;
  if (!words || count < 1 || count > kMostTensors) return false;
  operation->tensors.resize(count);
  for (XlaOperation::Tensor& tensor : operation->tensors) {
    int dims = 0;
    words >> tensor.type >> dims;
    if (!words || dims < 0 || dims > kMostDims) return false;
    tensor.dims.resize(dims);
    for (int64_t& dim : tensor.dims) words >> dim;
  }
  // The name may contain spaces, so it is the last field and takes all that remains.
  if (words.get() != ' ') return false;
  std::getline(words, operation->name, '\0');
  return !operation->name.empty();
}

std::string RegisterXlaCall() {
  // RTLD_NOLOAD, as in FindTensorFlow: a second copy would have a registry of its own, in which XLA
  // does not look.
  void* const library = dlopen(kLibrary, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return std::string(kLibrary) + " is not loaded";
  const auto global = reinterpret_cast<GlobalFunction>(dlsym(library, kGlobal));
  const auto add = reinterpret_cast<RegisterFunction>(dlsym(library, kRegister));
  if (global == nullptr || add == nullptr) {
    return std::string(kLibrary) + " has no registry of custom calls";
  }
  add(global(), kTarget, reinterpret_cast<void*>(&Call), "Host");
  return "";
}

}  // namespace hvd::frameworks::tensorflow
