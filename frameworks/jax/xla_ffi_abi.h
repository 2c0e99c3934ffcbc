// The binary interface (ABI) of XLA's foreign function interface (FFI), as far as it is used here.
// Declared independently, after its public header (xla/ffi/api/c_api.h in jaxlib), so that the tree
// builds without JAX and one library serves all versions from jaxlib 0.4.31 (interface 0.0) on:
// within major version 0 these structures have only grown at their ends. tests/frameworks compares
// them with the header of the installed jaxlib.
#ifndef FRAMEWORKS_JAX_XLA_FFI_ABI_H_
#define FRAMEWORKS_JAX_XLA_FFI_ABI_H_

#include <cstddef>
#include <cstdint>

namespace hvd::frameworks::jax {

inline constexpr int kXlaFfiMajorVersion = 0;

enum class XlaExtension : int { kMetadata = 1 };

// A node of the linked list of extensions. Interface 0.0 has none: its pointers are null.
struct XlaExtensionBase {
  size_t struct_size;
  XlaExtension type;
  XlaExtensionBase* next;
};

struct XlaApiVersion {
  size_t struct_size;
  XlaExtensionBase* extension_start;
  int major_version;
  int minor_version;
};

// A handler's answer when it is registered. All fields except the version are 0.
struct XlaMetadata {
  size_t struct_size;
  XlaApiVersion api_version;
  uint32_t traits;
};

struct XlaMetadataExtension {
  XlaExtensionBase base;
  XlaMetadata* metadata;
};

struct XlaError;             // opaque, like the next two
struct XlaExecutionContext;  // of one call
struct XlaInternalApi;

// The numbers are those of absl::StatusCode. kUnknown is for errors without such a code.
enum class XlaErrorCode : int { kUnknown = 2, kInvalidArgument = 3, kUnauthenticated = 16 };

struct XlaErrorCreateArgs {
  size_t struct_size;
  XlaExtensionBase* extension_start;
  const char* message;
  XlaErrorCode code;
};

struct XlaStreamGetArgs {
  size_t struct_size;
  XlaExtensionBase* extension_start;
  XlaExecutionContext* context;
  void* stream;  // the answer: on CUDA a CUstream
};

// The functions that are not used are opaque.
struct XlaApi {
  size_t struct_size;
  XlaExtensionBase* extension_start;
  XlaApiVersion api_version;
  const XlaInternalApi* internal_api;
  XlaError* (*error_create)(XlaErrorCreateArgs* args);
  void* error_get_message;
  void* error_destroy;
  void* handler_register;
  XlaError* (*stream_get)(XlaStreamGetArgs* args);
};

enum class XlaType : int {
  kPred = 1,
  kS8 = 2,
  kS16 = 3,
  kS32 = 4,
  kS64 = 5,
  kU8 = 6,
  kU16 = 7,
  kU32 = 8,
  kU64 = 9,
  kF16 = 10,
  kF32 = 11,
  kF64 = 12,
  kBf16 = 16,
};

struct XlaBuffer {
  size_t struct_size;
  XlaExtensionBase* extension_start;
  XlaType dtype;
  void* data;
  int64_t rank;
  int64_t* dims;
};

// The arguments or the results of a call. The only kind is 1, an XlaBuffer.
struct XlaBuffers {
  size_t struct_size;
  XlaExtensionBase* extension_start;
  int64_t size;
  int* kinds;
  XlaBuffer** buffers;
};

enum class XlaAttributeKind : int { kScalar = 3, kString = 4 };

// A string without a terminating zero. Also the value of an attribute of kind kString.
struct XlaByteSpan {
  const char* data;
  size_t size;
};

struct XlaScalar {
  XlaType dtype;
  void* value;
};

struct XlaAttributes {
  size_t struct_size;
  XlaExtensionBase* extension_start;
  int64_t size;
  XlaAttributeKind* kinds;
  XlaByteSpan** names;
  void** values;
};

enum class XlaStage : int { kExecute = 3 };

struct XlaCallFrame {
  size_t struct_size;
  XlaExtensionBase* extension_start;
  const XlaApi* api;
  XlaExecutionContext* context;
  XlaStage stage;
  XlaBuffers arguments;
  XlaBuffers results;
  XlaAttributes attributes;
};

}  // namespace hvd::frameworks::jax

#endif  // FRAMEWORKS_JAX_XLA_FFI_ABI_H_
