// A server that only proves who it is, by TLS handshakes with its certificate.
#ifndef AGENT_TESTING_TLS_PROGRAM_H_
#define AGENT_TESTING_TLS_PROGRAM_H_

#include <list>
#include <memory>
#include <string>
#include <thread>  // NOLINT: a server
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/event_loop.h"
#include "base/net/acceptor.h"
#include "base/net/tcp_socket.h"
#include "base/net/wire.h"
#include "gtest/gtest.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::agent {

// Listens on 127.0.0.1 until it is destroyed, on a thread.
class TlsProgram {
 public:
  // Closes the first `hang_ups` connections.
  explicit TlsProgram(const rendezvous::security::PeerCredentials& own, int hang_ups = 0)
      : tls_(*net::TlsContext::Create({own.ca_certificate, own.certificate, own.private_key})),
        hang_ups_(hang_ups) {
    EXPECT_TRUE(acceptor_.Begin().ok());
    thread_ = std::thread([this] { loop_->Run(); });
  }
  ~TlsProgram() {
    loop_->Post([this] { loop_->Stop(); });
    thread_.join();
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  void Take(Fd connection) {
    if (hang_ups_ > 0 && hang_ups_-- > 0) return;
    const int fd = connection.get();
    wires_.emplace_back(std::move(connection), tls_, net::TlsEnd::kAccepts);
    net::Wire& wire = wires_.back();
    const absl::Status watched = loop_->Watch(fd, EPOLLIN, [this, fd, &wire](uint32_t) {
      if (wire.Open() != net::Opening::kWantsToRead) loop_->Forget(fd);
    });
    EXPECT_TRUE(watched.ok()) << watched;
  }

  const std::shared_ptr<const net::TlsContext> tls_;
  int hang_ups_;  // used by the thread
  const std::unique_ptr<EventLoop> loop_ = EventLoop::Create().value();
  Fd listener_ = *net::ListenOnAnyPort("127.0.0.1");
  const int port_ = *net::PortOf(listener_.get());
  net::Acceptor acceptor_{*loop_, std::move(listener_), [this](Fd fd) { Take(std::move(fd)); }};
  std::list<net::Wire> wires_;
  std::thread thread_;
};

}  // namespace hvd::agent

#endif  // AGENT_TESTING_TLS_PROGRAM_H_
