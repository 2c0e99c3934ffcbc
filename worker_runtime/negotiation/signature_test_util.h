// Builders of signatures for tests, in one line each.
#ifndef WORKER_RUNTIME_NEGOTIATION_SIGNATURE_TEST_UTIL_H_
#define WORKER_RUNTIME_NEGOTIATION_SIGNATURE_TEST_UTIL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker_runtime/negotiation/messages.h"

namespace hvd::worker_runtime::negotiation {

inline TensorSignature MakeSignature(std::string name, std::vector<int64_t> shape = {2},
                                     OpKind op = OpKind::kAllReduce,
                                     collectives::DataType type = collectives::DataType::kFloat32) {
  TensorSignature signature;
  signature.name = std::move(name);
  signature.shape = std::move(shape);
  signature.op = op;
  signature.type = type;
  return signature;
}

inline SignaturePtr Share(TensorSignature signature) {
  return std::make_shared<const TensorSignature>(std::move(signature));
}

inline SignaturePtr Sig(std::string name, std::vector<int64_t> shape = {2},
                        OpKind op = OpKind::kAllReduce,
                        collectives::DataType type = collectives::DataType::kFloat32) {
  return Share(MakeSignature(std::move(name), std::move(shape), op, type));
}

inline PlannedTensor Planned(SignaturePtr signature, SignatureId new_id = kNoSignatureId) {
  PlannedTensor tensor;
  tensor.signature = std::move(signature);
  tensor.new_id = new_id;
  return tensor;
}

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_SIGNATURE_TEST_UTIL_H_
