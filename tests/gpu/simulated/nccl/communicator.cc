#include "tests/gpu/simulated/nccl/communicator.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

#include "tests/gpu/simulated/driver/cuda_driver.h"
#include "tests/gpu/simulated/nccl/introduction.h"

namespace simulated_gpu {
namespace {

// Makes the device current on this thread, which is the communicator's own.
void Enter(int device) {
  CudaContext* context = nullptr;
  cuDevicePrimaryCtxRetain(&context, device);
  cuCtxSetCurrent(context);
}

}  // namespace

Communicator::Communicator(const std::string& name, int rank, int size, int device)
    : device_(device), mesh_(name, rank, size) {
  // The program's signals are for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  worker_ = std::thread([this] { Work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Communicator::~Communicator() { Abort(); }

void Communicator::Do(std::function<void()> job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  jobs_.push_back(std::move(job));
  ++unfinished_jobs_;
  changed_.notify_all();
}

void Communicator::Work() {
  Enter(device_);
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stops_ || !jobs_.empty(); });
    if (stops_) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
    --unfinished_jobs_;
    changed_.notify_all();
  }
}

void Communicator::StartConnecting() {
  Do([this] { Connect(); });
}

void Communicator::Connect() {
  const Mesh::Outcome connected = mesh_.Connect();
  if (connected != Mesh::Outcome::kDone) return FailBy(connected);
  const Introduction introduction = Introduction::Of(device_);
  std::vector<Introduction> all(size());
  const Mesh::Outcome told = introduction.Exchange(mesh_, &all);
  if (told != Mesh::Outcome::kDone) return FailBy(told);
  const std::string problem = introduction.FindProblem(all, rank());
  // As with NCCL only the ranks with the problem tell: the others wait for them.
  if (!problem.empty()) return Fail(NcclResult::kInvalidUsage, problem);
  const Mesh::Outcome agreed = introduction.Exchange(mesh_, &all);
  if (agreed != Mesh::Outcome::kDone) FailBy(agreed);
}

void Communicator::Launch(std::vector<Operation> operations, CudaStream* stream) {
  auto work = [self = shared_from_this(), operations = std::move(operations), stream] {
    uint64_t turn;
    {
      const std::lock_guard<std::mutex> lock(self->mutex_);
      turn = self->launched_++;
    }
    auto* const kernel =
        new std::function<void()>([self, turn, operations] { self->RunKernel(turn, operations); });
    const CudaResult launched = cuLaunchHostFunc(
        stream,
        [](void* argument) {
          auto* const run = static_cast<std::function<void()>*>(argument);
          (*run)();
          delete run;
        },
        kernel);
    if (launched == CudaResult::kSuccess) return;
    delete kernel;
    self->Fail(NcclResult::kUnhandledCudaError, "the stream takes no kernel");
  };
  Do(std::move(work));
}

void Communicator::RunKernel(uint64_t turn, const std::vector<Operation>& operations) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return stops_ || ended_ == turn; });
    if (stops_) return;
    kernel_runs_ = true;
  }
  const Mesh::Outcome outcome = RunGroup(mesh_, operations);
  if (outcome != Mesh::Outcome::kDone) {
    FailBy(outcome);
    mesh_.AwaitAbort();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  kernel_runs_ = false;
  ++ended_;
  changed_.notify_all();
}

void Communicator::StartFinalizing() {
  Do([this] {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return stops_ || ended_ == launched_; });
  });
}

void Communicator::FailBy(Mesh::Outcome outcome) {
  switch (outcome) {
    case Mesh::Outcome::kDone:
    case Mesh::Outcome::kAborted:
      return;
    case Mesh::Outcome::kPeerIsGone:
      return Fail(NcclResult::kRemoteError, "a peer has closed its connection");
    case Mesh::Outcome::kMismatch:
      return Fail(NcclResult::kInternalError, "the ranks do not agree about an operation");
  }
}

void Communicator::Fail(NcclResult why, const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (error_ != NcclResult::kSuccess) return;
  error_ = why;
  SetLastError(text);
  changed_.notify_all();
}

NcclResult Communicator::state() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (error_ != NcclResult::kSuccess) return error_;
  return unfinished_jobs_ > 0 ? NcclResult::kInProgress : NcclResult::kSuccess;
}

NcclResult Communicator::AwaitState() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(
      lock, [this] { return stops_ || error_ != NcclResult::kSuccess || unfinished_jobs_ == 0; });
  return stops_ ? NcclResult::kInternalError : error_;
}

void Communicator::Abort() {
  std::thread worker;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stops_ = true;
    worker = std::move(worker_);
    changed_.notify_all();
  }
  mesh_.Abort();
  if (worker.joinable()) worker.join();
  std::deque<std::function<void()>> undone;  // they own this object
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return !kernel_runs_; });
  undone.swap(jobs_);
  lock.unlock();
}

void Communicator::Destroy() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] {
      return stops_ || error_ != NcclResult::kSuccess ||
             (unfinished_jobs_ == 0 && ended_ == launched_);
    });
  }
  Abort();
}

NcclOp Communicator::MakeOp(std::vector<char> factor) {
  const std::lock_guard<std::mutex> lock(mutex_);
  factors_[next_op_] = std::move(factor);
  return static_cast<NcclOp>(next_op_++);
}

bool Communicator::DropOp(NcclOp op) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return factors_.erase(static_cast<int>(op)) > 0;
}

bool Communicator::Resolve(Operation* operation) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int op = static_cast<int>(operation->op);
  if (op >= 0 && op <= static_cast<int>(NcclOp::kAverage)) return true;
  const auto found = factors_.find(op);
  if (found == factors_.end()) return false;
  operation->op = NcclOp::kSum;
  operation->factor = found->second;
  return operation->factor.size() == SizeOf(operation->type);
}

}  // namespace simulated_gpu
