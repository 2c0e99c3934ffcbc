// The socket at which this host's workers ask for their credentials: an abstract unix socket, so
// that nothing stays behind in the file system.
#ifndef RENDEZVOUS_BOOTSTRAP_BOOTSTRAP_SOCKET_H_
#define RENDEZVOUS_BOOTSTRAP_BOOTSTRAP_SOCKET_H_

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/net/acceptor.h"
#include "base/net/frames.h"
#include "proto/agent.pb.h"

namespace hvd::rendezvous::bootstrap {

// Answers one WorkerHello per connection. Belongs to the loop's thread. Other users' processes get
// an error instead of an answer. A client that has sent no valid hello within kPatience is dropped.
// Neither delays other clients.
class BootstrapSocket {
 public:
  // Long: a process may not get the CPU between connecting and sending.
  static constexpr absl::Duration kPatience = absl::Seconds(30);
  // The limit of connections at a time. The client that has waited longest makes room for a new
  // one.
  static constexpr size_t kMaxClients = 256;

  struct Response {
    pb::WorkerBootstrap bootstrap;
    // Descriptors to send along, borrowed; -1: none. `bootstrap` lists those that are sent.
    int page = -1;
    int arena = -1;
    int stack_pipe = -1;
    int kept = -1;
  };
  // `asker` is the process that asks. 0: it is not visible from here, e.g. a process of another
  // container.
  using Answer = std::function<Response(const pb::WorkerHello& hello, pid_t asker)>;

  // Listens under `name`, or if that is empty under a random one. The name is no secret: all
  // processes of the network namespace can find it. Only processes of `user` reach `answer`, which
  // must distinguish its workers from that user's other processes.
  // Errors:
  //   - ResourceExhausted, Internal, AlreadyExists (the name is taken), InvalidArgument (it is too
  //     long): no socket can be made.
  static absl::StatusOr<std::unique_ptr<BootstrapSocket>> Create(EventLoop& loop, uid_t user,
                                                                 Answer answer,
                                                                 std::string name = "");
  ~BootstrapSocket();

  // Without the leading zero byte.
  const std::string& name() const { return name_; }

 private:
  struct Client {
    Fd fd;
    pid_t pid;
    net::FrameDecoder decoder;
    EventLoop::TimerId patience;
  };

  BootstrapSocket(EventLoop& loop, uid_t user, Answer answer, std::string name, Fd listener);
  void OnConnection(Fd fd);
  void Admit(Fd fd, pid_t pid);
  void OnHello(int fd);
  static void Reply(int fd, Response response);
  void Drop(int fd);

  EventLoop& loop_;
  const uid_t user_;
  const Answer answer_;
  const std::string name_;
  net::Acceptor acceptor_;
  std::map<int, Client> clients_;
};

}  // namespace hvd::rendezvous::bootstrap

#endif  // RENDEZVOUS_BOOTSTRAP_BOOTSTRAP_SOCKET_H_
