#include "base/net/wire.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::net {
namespace {

using Context = std::shared_ptr<const TlsContext>;

TlsIdentity IdentityOf(const rendezvous::security::PeerCredentials& credentials) {
  return {credentials.ca_certificate, credentials.certificate, credentials.private_key};
}

Context ContextOf(const rendezvous::security::PeerCredentials& credentials,
                  uint64_t records_per_key = TlsContext::kRecordsPerKey) {
  return *TlsContext::Create(IdentityOf(credentials), records_per_key);
}

struct Ends {
  Wire accepts, connects;
};

Ends Connected(const Context& accepts, const Context& connects) {
  int fds[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  return {Wire(Fd(fds[0]), accepts, TlsEnd::kAccepts),
          Wire(Fd(fds[1]), connects, TlsEnd::kConnects)};
}

// Completes both handshakes, in alternating steps.
void Open(Wire& one, Wire& other) {
  const auto wants = [](Opening step) {
    return step == Opening::kWantsToRead || step == Opening::kWantsToWrite;
  };
  bool again = true;
  while (again) {
    again = wants(one.Open());
    again = wants(other.Open()) && again;
  }
}

// Reads until there are `size` bytes or the stream ends.
std::string Read(Wire& wire, size_t size) {
  std::string read(size, '\0');
  size_t got = 0;
  while (got < size) {
    const IoResult some = wire.Read(&read[got], size - got);
    got += some.bytes;
    if (some.end || some.would_block) break;
  }
  read.resize(got);
  return read;
}

class WireTest : public testing::Test {
 protected:
  const std::unique_ptr<rendezvous::security::JobAuthority> authority_ =
      *rendezvous::security::JobAuthority::Create("job");
  const rendezvous::security::PeerCredentials host_ = *authority_->IssueForHost("any host");
  const Context tls_ = ContextOf(host_);
};

TEST_F(WireTest, WithoutTls_BytesAreUnchanged) {
  Ends ends = Connected(nullptr, nullptr);
  EXPECT_EQ(ends.accepts.Open(), Opening::kDone);
  EXPECT_EQ(ends.connects.Write("abc").bytes, 3U);
  EXPECT_EQ(Read(ends.accepts, 3), "abc");
  EXPECT_TRUE(ends.connects.Binding().empty());
  ends.accepts.EndWriting();
  char byte;
  EXPECT_TRUE(ends.connects.Read(&byte, 1).end);
  EXPECT_EQ(ends.connects.failure(), "");
}

TEST_F(WireTest, WithTls_BytesComeThroughAndAreNotSeen) {
  Ends ends = Connected(tls_, tls_);
  Open(ends.accepts, ends.connects);
  EXPECT_EQ(ends.accepts.Write("there").bytes, 5U);
  EXPECT_EQ(ends.connects.Write("plain").bytes, 5U);
  char seen[200];
  const ssize_t count = recv(ends.accepts.fd(), seen, sizeof(seen), MSG_PEEK);
  ASSERT_GT(count, 5);
  EXPECT_FALSE(absl::StrContains(absl::string_view(seen, static_cast<size_t>(count)), "plain"));
  EXPECT_EQ(Read(ends.accepts, 5), "plain");
  EXPECT_EQ(Read(ends.connects, 5), "there");
  ends.accepts.EndWriting();
  EXPECT_TRUE(ends.connects.Read(seen, 1).end);
  EXPECT_EQ(ends.connects.failure(), "");
}

TEST_F(WireTest, Binding_IsThatOfTheSession) {
  Ends ends = Connected(tls_, tls_), others = Connected(tls_, tls_);
  Open(ends.accepts, ends.connects);
  Open(others.accepts, others.connects);
  EXPECT_EQ(ends.accepts.Binding().size(), 32U);
  EXPECT_EQ(ends.accepts.Binding(), ends.connects.Binding());
  EXPECT_NE(ends.accepts.Binding(), others.accepts.Binding());
}

TEST_F(WireTest, BufferedBytes_AreReported) {
  Ends ends = Connected(tls_, tls_);
  Open(ends.accepts, ends.connects);
  ends.connects.Write("two");
  ends.connects.Write("records");
  EXPECT_EQ(Read(ends.accepts, 3), "two");
  EXPECT_TRUE(ends.accepts.HasBuffered());
  EXPECT_EQ(Read(ends.accepts, 7), "records");
  EXPECT_FALSE(ends.accepts.HasBuffered());
}

// A large message, during which the keys change.
TEST_F(WireTest, FullSocket_GoesOnWhereItWas) {
  const Context restless = ContextOf(host_, /*records_per_key=*/3);
  Ends ends = Connected(restless, restless);
  Open(ends.accepts, ends.connects);
  std::string large;
  while (large.size() < (4U << 20)) large += std::to_string(large.size());
  std::string received;
  bool was_full = false;
  for (size_t sent = 0; received.size() < large.size();) {
    const IoResult some = ends.connects.Write(absl::string_view(large).substr(sent));
    ASSERT_FALSE(some.end) << ends.connects.failure();
    sent += some.bytes;
    was_full = was_full || some.would_block;
    if (some.would_block || sent == large.size()) received += Read(ends.accepts, large.size());
  }
  EXPECT_TRUE(was_full);
  EXPECT_EQ(received, large);
}

// Both ends change their keys while both sockets are full. Each can only write once the other one
// has read.
TEST_F(WireTest, FullSocketsInBothDirections_CanStillBeRead) {
  for (const size_t size : {1000U, 16000U, 60000U}) {
    const Context restless = ContextOf(host_, /*records_per_key=*/1);
    Ends ends = Connected(restless, restless);
    Open(ends.accepts, ends.connects);
    const std::string data(size, 'd');
    for (Wire* wire : {&ends.accepts, &ends.connects}) {
      while (!wire->Write(data).would_block) {
      }
    }
    EXPECT_FALSE(Read(ends.accepts, size).empty()) << size;
    EXPECT_FALSE(Read(ends.connects, size).empty()) << size;
  }
}

TEST_F(WireTest, CertificateOfAnotherJob_IsRefusedByBoth) {
  const Context other =
      ContextOf(*(*rendezvous::security::JobAuthority::Create("job"))->IssueForHost("any host"));
  for (const auto& [accepts, connects] : {std::pair(tls_, other), std::pair(other, tls_)}) {
    Ends ends = Connected(accepts, connects);
    Open(ends.accepts, ends.connects);
    EXPECT_EQ(ends.connects.Open(), Opening::kFailed);
    EXPECT_TRUE(ends.connects.unsafe());
    EXPECT_TRUE(absl::StrContains(ends.connects.failure(), "certificate verify failed"))
        << ends.connects.failure();
  }
}

TEST_F(WireTest, StrangerThatTrustsEveryone_IsRefused) {
  const auto strangers = *rendezvous::security::JobAuthority::Create("job");
  rendezvous::security::PeerCredentials stranger = *strangers->IssueForHost("any host");
  stranger.ca_certificate = host_.ca_certificate;
  Ends ends = Connected(tls_, ContextOf(stranger));
  Open(ends.accepts, ends.connects);
  EXPECT_EQ(ends.accepts.Open(), Opening::kFailed);
  char byte;
  EXPECT_TRUE(ends.connects.Read(&byte, 1).end);
  EXPECT_TRUE(absl::StrContains(ends.connects.failure(), "unknown ca")) << ends.connects.failure();
}

TEST_F(WireTest, CertificateOfTheDaemon_IsRefusedAsAHosts) {
  const Context daemon = ContextOf(*authority_->IssueForDaemon());
  Ends ends = Connected(tls_, daemon);
  Open(ends.accepts, ends.connects);
  EXPECT_EQ(ends.accepts.Open(), Opening::kFailed);
  Ends reversed = Connected(daemon, tls_);
  Open(reversed.accepts, reversed.connects);
  EXPECT_EQ(reversed.connects.Open(), Opening::kFailed);
}

TEST_F(WireTest, OneSideWithoutTls_DoesNotOpen) {
  Ends ends = Connected(tls_, nullptr);
  ends.connects.Write("hvdctl1\nand so on");
  EXPECT_EQ(ends.accepts.Open(), Opening::kFailed);
  EXPECT_TRUE(ends.accepts.unsafe());
}

// Flips each bit that is sent over the socket, during the handshake and after it.
TEST_F(WireTest, AnyByteChangedOnTheWay_IsNeverRead) {
  for (size_t position = 0;; position += 7) {
    Ends ends = Connected(tls_, nullptr), far = Connected(nullptr, tls_);
    size_t passed = 0;
    const auto relay = [&](Wire& from, Wire& to, bool changes) {
      char bytes[4096];
      const IoResult some = from.Read(bytes, sizeof(bytes));
      const bool hit = changes && position >= passed && position < passed + some.bytes;
      if (hit) bytes[position - passed] ^= 0x10;
      if (changes) passed += some.bytes;
      if (some.bytes > 0) to.Write(absl::string_view(bytes, some.bytes));
      return hit;
    };
    bool hit = false;
    std::string got;
    for (int turn = 0; turn < 8; ++turn) {
      if (far.connects.Open() == Opening::kDone && got.empty()) {
        far.connects.Write("nothing but this");
        got = "sent";
      }
      hit = relay(far.accepts, ends.connects, /*changes=*/true) || hit;
      ends.accepts.Open();
      relay(ends.connects, far.accepts, /*changes=*/false);
    }
    const bool open = ends.accepts.Open() == Opening::kDone;
    const std::string read = open ? Read(ends.accepts, 100) : "";
    if (!hit) {
      EXPECT_EQ(read, "nothing but this");
      EXPECT_GT(position, 500U);
      return;
    }
    EXPECT_EQ(read, "") << "with a change at " << position;
  }
}

TEST_F(WireTest, BadTexts_AreNamed) {
  const auto message = [](const TlsIdentity& identity) {
    return std::string(TlsContext::Create(identity).status().message());
  };
  TlsIdentity identity = IdentityOf(host_);
  identity.authority = "x";
  EXPECT_EQ(message(identity), "the authority's certificate can't be read");
  identity = IdentityOf(host_);
  identity.certificate = "x";
  EXPECT_EQ(message(identity), "the certificate can't be read");
  identity = IdentityOf(host_);
  identity.private_key = "x";
  EXPECT_EQ(message(identity), "the private key can't be read");
  identity.private_key = authority_->IssueForHost("another")->private_key;
  EXPECT_EQ(message(identity), "the private key is not the certificate's");
}

}  // namespace
}  // namespace hvd::net
