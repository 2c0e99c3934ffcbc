// Does not compile unless what frameworks/jax/xla_ffi_abi.h declares of XLA's FFI is what the real
// header says. There is nothing to run.
#include <xla/ffi/api/c_api.h>

#include <cstddef>

#include "frameworks/jax/xla_ffi_abi.h"

using namespace hvd::frameworks::jax;

#define SAME_FIELD(Own, field, Theirs, their_field)                     \
  static_assert(offsetof(Own, field) == offsetof(Theirs, their_field)); \
  static_assert(sizeof(decltype(Own::field)) == sizeof(decltype(Theirs::their_field)))
#define SAME_VALUE(own, theirs) static_assert(static_cast<int>(own) == static_cast<int>(theirs))
#define SAME_SIZE(Own, Theirs) static_assert(sizeof(Own) == sizeof(Theirs))

SAME_VALUE(kXlaFfiMajorVersion, XLA_FFI_API_MAJOR);

SAME_SIZE(XlaApiVersion, XLA_FFI_Api_Version);
SAME_FIELD(XlaApiVersion, major_version, XLA_FFI_Api_Version, major_version);
SAME_FIELD(XlaApiVersion, minor_version, XLA_FFI_Api_Version, minor_version);

#if XLA_FFI_API_MINOR >= 4  // which renames it
using XLA_FFI_Extension_Base = XLA_FFI_InternalExtension;
#endif
#if XLA_FFI_API_MINOR > 0  // interface 0.0 has no extensions
SAME_VALUE(XlaExtension::kMetadata, XLA_FFI_Extension_Metadata);
SAME_FIELD(XlaExtensionBase, type, XLA_FFI_Extension_Base, type);
SAME_FIELD(XlaExtensionBase, next, XLA_FFI_Extension_Base, next);
SAME_FIELD(XlaMetadataExtension, metadata, XLA_FFI_Metadata_Extension, metadata);
SAME_FIELD(XlaMetadata, api_version, XLA_FFI_Metadata, api_version);
SAME_FIELD(XlaMetadata, traits, XLA_FFI_Metadata, traits);
#endif

SAME_VALUE(XlaErrorCode::kUnknown, XLA_FFI_Error_Code_UNKNOWN);
SAME_VALUE(XlaErrorCode::kInvalidArgument, XLA_FFI_Error_Code_INVALID_ARGUMENT);
SAME_VALUE(XlaErrorCode::kUnauthenticated, XLA_FFI_Error_Code_UNAUTHENTICATED);
SAME_SIZE(XlaErrorCreateArgs, XLA_FFI_Error_Create_Args);
SAME_FIELD(XlaErrorCreateArgs, message, XLA_FFI_Error_Create_Args, message);
SAME_FIELD(XlaErrorCreateArgs, code, XLA_FFI_Error_Create_Args, errc);

SAME_FIELD(XlaApi, api_version, XLA_FFI_Api, api_version);
SAME_FIELD(XlaApi, error_create, XLA_FFI_Api, XLA_FFI_Error_Create);
SAME_FIELD(XlaApi, stream_get, XLA_FFI_Api, XLA_FFI_Stream_Get);
SAME_SIZE(XlaStreamGetArgs, XLA_FFI_Stream_Get_Args);
SAME_FIELD(XlaStreamGetArgs, context, XLA_FFI_Stream_Get_Args, ctx);
SAME_FIELD(XlaStreamGetArgs, stream, XLA_FFI_Stream_Get_Args, stream);

SAME_VALUE(XlaType::kPred, XLA_FFI_DataType_PRED);
SAME_VALUE(XlaType::kS8, XLA_FFI_DataType_S8);
SAME_VALUE(XlaType::kS16, XLA_FFI_DataType_S16);
SAME_VALUE(XlaType::kS32, XLA_FFI_DataType_S32);
SAME_VALUE(XlaType::kS64, XLA_FFI_DataType_S64);
SAME_VALUE(XlaType::kU8, XLA_FFI_DataType_U8);
SAME_VALUE(XlaType::kU16, XLA_FFI_DataType_U16);
SAME_VALUE(XlaType::kU32, XLA_FFI_DataType_U32);
SAME_VALUE(XlaType::kU64, XLA_FFI_DataType_U64);
SAME_VALUE(XlaType::kF16, XLA_FFI_DataType_F16);
SAME_VALUE(XlaType::kF32, XLA_FFI_DataType_F32);
SAME_VALUE(XlaType::kF64, XLA_FFI_DataType_F64);
SAME_VALUE(XlaType::kBf16, XLA_FFI_DataType_BF16);

SAME_SIZE(XlaBuffer, XLA_FFI_Buffer);
SAME_FIELD(XlaBuffer, dtype, XLA_FFI_Buffer, dtype);
SAME_FIELD(XlaBuffer, data, XLA_FFI_Buffer, data);
SAME_FIELD(XlaBuffer, rank, XLA_FFI_Buffer, rank);
SAME_FIELD(XlaBuffer, dims, XLA_FFI_Buffer, dims);

SAME_VALUE(1, XLA_FFI_ArgType_BUFFER);
SAME_VALUE(1, XLA_FFI_RetType_BUFFER);
SAME_SIZE(XlaBuffers, XLA_FFI_Args);
SAME_FIELD(XlaBuffers, size, XLA_FFI_Args, size);
SAME_FIELD(XlaBuffers, kinds, XLA_FFI_Args, types);
SAME_FIELD(XlaBuffers, buffers, XLA_FFI_Args, args);
SAME_SIZE(XlaBuffers, XLA_FFI_Rets);
SAME_FIELD(XlaBuffers, size, XLA_FFI_Rets, size);
SAME_FIELD(XlaBuffers, kinds, XLA_FFI_Rets, types);
SAME_FIELD(XlaBuffers, buffers, XLA_FFI_Rets, rets);

SAME_VALUE(XlaAttributeKind::kScalar, XLA_FFI_AttrType_SCALAR);
SAME_VALUE(XlaAttributeKind::kString, XLA_FFI_AttrType_STRING);
SAME_SIZE(XlaByteSpan, XLA_FFI_ByteSpan);
SAME_FIELD(XlaByteSpan, data, XLA_FFI_ByteSpan, ptr);
SAME_FIELD(XlaByteSpan, size, XLA_FFI_ByteSpan, len);
SAME_SIZE(XlaScalar, XLA_FFI_Scalar);
SAME_FIELD(XlaScalar, dtype, XLA_FFI_Scalar, dtype);
SAME_FIELD(XlaScalar, value, XLA_FFI_Scalar, value);
SAME_SIZE(XlaAttributes, XLA_FFI_Attrs);
SAME_FIELD(XlaAttributes, size, XLA_FFI_Attrs, size);
SAME_FIELD(XlaAttributes, kinds, XLA_FFI_Attrs, types);
SAME_FIELD(XlaAttributes, names, XLA_FFI_Attrs, names);
SAME_FIELD(XlaAttributes, values, XLA_FFI_Attrs, attrs);

SAME_VALUE(XlaStage::kExecute, XLA_FFI_ExecutionStage_EXECUTE);
SAME_FIELD(XlaCallFrame, api, XLA_FFI_CallFrame, api);
SAME_FIELD(XlaCallFrame, context, XLA_FFI_CallFrame, ctx);
SAME_FIELD(XlaCallFrame, stage, XLA_FFI_CallFrame, stage);
SAME_FIELD(XlaCallFrame, arguments, XLA_FFI_CallFrame, args);
SAME_FIELD(XlaCallFrame, results, XLA_FFI_CallFrame, rets);
SAME_FIELD(XlaCallFrame, attributes, XLA_FFI_CallFrame, attrs);
