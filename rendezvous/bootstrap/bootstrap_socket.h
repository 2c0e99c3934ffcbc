// The abstract unix socket at which this host's workers request their credentials. An abstract
// socket leaves no file behind.
#ifndef RENDEZVOUS_BOOTSTRAP_BOOTSTRAP_SOCKET_H_
#define RENDEZVOUS_BOOTSTRAP_BOOTSTRAP_SOCKET_H_

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/net/acceptor.h"
#include "base/net/frames.h"
#include "base/net/strangers.h"
#include "proto/agent.pb.h"

namespace hvd::rendezvous::bootstrap {

// Answers one WorkerHello per connection. Processes of other users get an error as the answer. A
// client that has sent no valid hello within kPatience is disconnected. Neither delays other
// clients. Used by the loop's thread only.
class BootstrapSocket {
 public:
  // The time limit for a hello. Long, since a client may be starved of CPU between connecting and
  // sending.
  static constexpr absl::Duration kPatience = absl::Seconds(30);
  // The maximum number of clients that have sent nothing yet, and of others. Beyond it one goes, of
  // the process with the most of them (net::Strangers).
  static constexpr size_t kMaxClients = 256;

  struct Response {
    pb::WorkerBootstrap bootstrap;
    // Descriptors to send with the answer, borrowed; -1: none. `bootstrap` says which are sent.
    int page = -1;
    int arena = -1;
    int stack_pipe = -1;
    int faults = -1;
    int kept = -1;
  };
  // Computes the answer. `asker` is the client's pid; 0: the process is not visible from here, such
  // as one in another container.
  using Answer = std::function<Response(const pb::WorkerHello& hello, pid_t asker)>;

  // Listens under the first of `names` that is free, or under a random name if there are none. The
  // name is not a secret: every process of the network namespace can find it once it is in use.
  // `answer` is called for processes of `user` only; it must distinguish workers from other
  // processes of that user.
  // Errors:
  //   - AlreadyExists: all names are in use.
  //   - InvalidArgument: a name is too long.
  //   - ResourceExhausted, Internal: no socket can be created.
  static absl::StatusOr<std::unique_ptr<BootstrapSocket>> Create(
      EventLoop& loop, uid_t user, Answer answer, const std::vector<std::string>& names = {});
  ~BootstrapSocket();

  // The socket's name, without the leading zero byte of an abstract address.
  const std::string& name() const { return name_; }

 private:
  using Id = net::Strangers::Id;
  struct Client {
    Fd fd;
    pid_t pid;
    net::FrameDecoder decoder;
    EventLoop::TimerId patience;
  };

  BootstrapSocket(EventLoop& loop, uid_t user, Answer answer, std::string name, Fd listener);
  void OnConnection(Fd fd);
  void Admit(Fd fd, pid_t pid);
  void KeepToTheBound();
  bool MakeRoom();
  void OnHello(Id id);
  static void Reply(int fd, Response response);
  void Drop(Id id);

  EventLoop& loop_;
  const uid_t user_;
  const Answer answer_;
  const std::string name_;
  net::Acceptor acceptor_;
  net::Strangers strangers_{kMaxClients};
  std::map<Id, Client> clients_;  // of strangers_
};

}  // namespace hvd::rendezvous::bootstrap

#endif  // RENDEZVOUS_BOOTSTRAP_BOOTSTRAP_SOCKET_H_
