// The connections of one rank of a simulated NCCL communicator with all others: sockets of this
// machine.
#ifndef TESTS_GPU_SIMULATED_NCCL_MESH_H_
#define TESTS_GPU_SIMULATED_NCCL_MESH_H_

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

namespace simulated_gpu {

// Bytes to or from a peer.
struct Transfer {
  int peer;
  void* data;
  size_t bytes;
};

// Connect() and Exchange() are for one thread at a time; Abort() and the others for any.
class Mesh {
 public:
  // kMismatch: a peer has sent another number of bytes than this rank expects.
  enum class Outcome { kDone, kAborted, kPeerIsGone, kMismatch };

  // All ranks of a mesh have the same `name`, which no other mesh has.
  Mesh(const std::string& name, int rank, int size);
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Waits for all ranks, however long.
  Outcome Connect();
  // Does all transfers at once; those with the same peer in their order. What a rank sends to
  // itself it receives. Waits for the peers, however long.
  Outcome Exchange(const std::vector<Transfer>& sends, const std::vector<Transfer>& receives);

  // Makes what is under way return kAborted, and all later calls.
  void Abort();
  bool is_aborted() const { return aborted_; }
  void AwaitAbort();

 private:
  Outcome Listen();
  Outcome ConnectTo(int peer);
  Outcome AcceptOne();
  // Waits for the file, or `milliseconds` (-1: forever), or the abort. Whether it was not aborted.
  bool Await(int file, short events, int milliseconds);  // NOLINT(runtime/int): poll's
  Outcome SendAll(int file, const void* data, size_t bytes);
  Outcome ReceiveAll(int file, void* data, size_t bytes);

  const std::string name_;
  const int rank_;
  const int size_;
  std::atomic<bool> aborted_{false};
  int abort_event_ = -1;
  int listener_ = -1;
  std::vector<int> peers_;  // their sockets; -1 for this rank
};

}  // namespace simulated_gpu

#endif  // TESTS_GPU_SIMULATED_NCCL_MESH_H_
