// A TCP proxy that damages or slows what passes through it, for tests.
#ifndef COLLECTIVES_TCP_FAULTY_PROXY_TESTING_H_
#define COLLECTIVES_TCP_FAULTY_PROXY_TESTING_H_

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <thread>  // NOLINT: its own one
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/fd.h"
#include "collectives/mesh.h"

namespace hvd::collectives::tcp {

// What happens once, to the connection over which the byte number `after` passes.
struct Fault {
  enum Kind {
    kNone,
    kReset,      // both ends get a reset
    kClose,      // both ends get the end of the stream
    kCutDialer,  // the dialer gets the end of the stream; the acceptor gets nothing any more
    kStall,      // nothing passes any more, on no connection of this proxy
    kDribble,    // from now on few bytes pass at a time
    kFlip,       // a bit changes
  };
  Kind kind = kNone;
  size_t after = 0;
};

// How fast bytes pass, over all connections of a proxy together. It holds few of them.
struct Pace {
  // At which `bytes` take `time`.
  static Pace Of(size_t bytes, absl::Duration time) {
    const absl::Duration step = absl::Milliseconds(50);
    return {static_cast<size_t>(static_cast<double>(bytes) * absl::FDivDuration(step, time)), step};
  }

  size_t bytes_per_step = 0;  // 0: as fast as they can
  absl::Duration step = absl::ZeroDuration();
};

// Forwards connections until it is destroyed.
class FaultyProxy {
 public:
  // `target`: a link address (kLinkAddressBytes) on the loopback interface.
  FaultyProxy(std::string target, Fault fault, Pace pace = {});
  ~FaultyProxy();

  // The link address at which it accepts connections.
  const std::string& address() const { return address_; }

 private:
  // One direction of a connection.
  struct Way {
    std::string held;  // read, and not written yet
    bool ended = false;
  };
  struct Connection {
    Fd dialer, acceptor;
    Way up, down;  // from the dialer; to it
    bool is_cut = false;
  };

  void Run();
  void BeginStep();
  bool MayRead(const Way& way) const;
  void Accept();
  // Moves what it can; returns whether the connection lives on.
  bool Forward(Connection& connection);
  bool Move(Connection& connection, const Fd& from, const Fd& to, Way& way);
  void Strike(Connection& connection, std::string& bytes);

  const std::string target_;
  const Pace pace_;
  Fault fault_;
  size_t left_ = 0;  // of the step
  size_t passed_ = 0;
  bool dribbles_ = false;
  bool stalls_ = false;
  Fd listener_;
  std::string address_;
  const Fd stop_;   // an eventfd
  const Fd steps_;  // a timerfd
  std::list<Connection> connections_;
  std::thread thread_;
};

// A mesh whose ranks reach each other through a proxy before each rank. One group can be connected.
class ProxiedMesh : public MeshBackend {
 public:
  ProxiedMesh(std::unique_ptr<MeshBackend> real, Fault fault, Pace pace)
      : real_(std::move(real)), fault_(fault), pace_(pace) {}

  absl::string_view name() const override { return real_->name(); }
  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const GroupInfo& group, KeyExchange& keys,
                                                        const WaitBounds& bounds) override;
  absl::StatusOr<std::unique_ptr<MeshCommunicator>> ConnectMesh(const GroupInfo& group,
                                                                KeyExchange& keys,
                                                                const WaitBounds& bounds) override;
  // Replaces the link addresses of all ranks, in their order, by those of their proxies.
  void Divert(std::vector<std::string>& addresses);

 private:
  const std::unique_ptr<MeshBackend> real_;
  const Fault fault_;
  const Pace pace_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<FaultyProxy>> proxies_ ABSL_GUARDED_BY(mutex_);  // by rank
};

}  // namespace hvd::collectives::tcp

#endif  // COLLECTIVES_TCP_FAULTY_PROXY_TESTING_H_
