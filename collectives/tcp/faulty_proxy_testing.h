// A TCP proxy that damages what passes through it, for tests.
#ifndef COLLECTIVES_TCP_FAULTY_PROXY_TESTING_H_
#define COLLECTIVES_TCP_FAULTY_PROXY_TESTING_H_

#include <cstddef>
#include <list>
#include <string>
#include <thread>  // NOLINT: its own one

#include "base/fd.h"

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

// Forwards connections until it is destroyed.
class FaultyProxy {
 public:
  // `target`: a link address (kLinkAddressBytes) on the loopback interface.
  FaultyProxy(std::string target, Fault fault);
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
  void Accept();
  // Moves what it can; returns whether the connection lives on.
  bool Forward(Connection& connection);
  bool Move(Connection& connection, const Fd& from, const Fd& to, Way& way);
  void Strike(Connection& connection, std::string& bytes);

  const std::string target_;
  Fault fault_;
  size_t passed_ = 0;
  bool dribbles_ = false;
  bool stalls_ = false;
  Fd listener_;
  std::string address_;
  const Fd stop_;  // an eventfd
  std::list<Connection> connections_;
  std::thread thread_;
};

}  // namespace hvd::collectives::tcp

#endif  // COLLECTIVES_TCP_FAULTY_PROXY_TESTING_H_
