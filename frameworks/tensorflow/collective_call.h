// One execution of a collective operation in TensorFlow, from its kernel's inputs to its outputs.
#ifndef FRAMEWORKS_TENSORFLOW_COLLECTIVE_CALL_H_
#define FRAMEWORKS_TENSORFLOW_COLLECTIVE_CALL_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "frameworks/tensorflow/tensorflow_library.h"
#include "worker_runtime/api/hvd_c_api.h"

namespace hvd::frameworks::tensorflow {

// The attributes of an operation in the graph.
struct Attributes {
  int32_t op = HVD_ALLREDUCE;
  std::string name;  // the same on all ranks
  int32_t reduction = HVD_SUM;
  float prescale = 1;
  float postscale = 1;
  int32_t root_rank = 0;
  int32_t process_set = 0;
  // 1: the kernel's thread does the engine's work meanwhile, unless the name is in flight.
  int32_t waits = 0;
};

// Owns itself: it is deleted when the operation has ended.
class CollectiveCall {
 public:
  // Starts the operation. Calls done() once when the operation has ended: on this thread if it
  // can't start, or if `attributes.waits` is set and the name is not in flight; otherwise on a
  // thread of the runtime. `attributes` and `context` must stay valid until then.
  static void Start(const Attributes& attributes, TF_OpKernelContext* context,
                    std::function<void()> done);

 private:
  CollectiveCall(const Attributes& attributes, TF_OpKernelContext* context,
                 std::function<void()> done);

  // These return false if the operation has failed.
  bool TakeInputs();
  bool MakeOutputs();
  bool TakeSplits();
  void MakeRequests();
  void Submit(bool may_block);
  void SubmitAndWait();
  static void OnDone(void* call, int64_t handle, int32_t status);
  bool CopyResults(int64_t handle);
  bool CopyResult(int64_t handle, int index);
  bool WriteNumbers(int output, const int32_t* numbers, const std::vector<int64_t>& dims);

  bool Fail(const Status& status);
  bool FailFor(int32_t hvd_status);
  // `shown_as` is the status that selects the exception's class. A mismatch between ranks is a
  // FailedPreconditionError, as in Horovod; an invalid argument is an InvalidArgumentError.
  bool FailFor(int32_t hvd_status, int32_t shown_as);
  void End();

  // Whether the sizes of the results are known beforehand. Such results are computed in place.
  bool has_known_outputs() const {
    return attributes_.op == HVD_ALLREDUCE || attributes_.op == HVD_BROADCAST;
  }

  const Attributes& attributes_;
  TF_OpKernelContext* const context_;
  std::function<void()> done_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  std::vector<std::vector<int64_t>> dims_;  // of the inputs
  std::vector<int32_t> splits_;             // of an all-to-all
  std::vector<std::string> names_;
  std::vector<hvd_request> requests_;
};

}  // namespace hvd::frameworks::tensorflow

#endif  // FRAMEWORKS_TENSORFLOW_COLLECTIVE_CALL_H_
