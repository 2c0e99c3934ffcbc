// The binary interface of XLA's FFI, by which jitted programs call functions of other libraries, as
// far as it is used here. It is declared anew from its public header (xla/ffi/api/c_api.h in
// jaxlib), so that the tree builds without JAX and one library serves all versions from jaxlib
// 0.4.31 (interface 0.0) on: within major version 0 these structures have only grown at their ends.
// tests/frameworks compares them with the header of the jaxlib that is installed.
#ifndef FRAMEWORKS_JAX_XLA_FFI_ABI_H_
#define FRAMEWORKS_JAX_XLA_FFI_ABI_H_

#include <cstddef>
#include <cstdint>

namespace hvd::frameworks::jax {

inline constexpr int kXlaFfiMajorVersion = 0;

enum class XlaExtension : int { kMetadata = 1 };

// A list. Null in interface 0.0, which has no extensions.
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

// What a handler says of itself when it is registered; zeros beside the version.
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

// The numbers are Abseil's; kUnknown is for what has none.
enum class XlaErrorCode : int { kUnknown = 2, kInvalidArgument = 3, kUnauthenticated = 16 };

struct XlaErrorCreateArgs {
  size_t struct_size;
  XlaExtensionBase* extension_start;
  const char* message;
  XlaErrorCode code;
};

struct XlaApi {
  size_t struct_size;
  XlaExtensionBase* extension_start;
  XlaApiVersion api_version;
  const XlaInternalApi* internal_api;
  XlaError* (*error_create)(XlaErrorCreateArgs* args);
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

// Of arguments and results alike: 1 is the only kind, a XlaBuffer.
struct XlaBuffers {
  size_t struct_size;
  XlaExtensionBase* extension_start;
  int64_t size;
  int* kinds;
  XlaBuffer** buffers;
};

enum class XlaAttributeKind : int { kScalar = 3, kString = 4 };

// Not terminated by a zero. Also the value of a kString.
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
