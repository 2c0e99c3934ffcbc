#include "base/net/http_listener.h"

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/net/acceptor.h"
#include "base/net/address.h"
#include "base/net/listen_address.h"
#include "base/net/local_network.h"
#include "base/net/peer_source.h"
#include "base/net/strangers.h"
#include "base/status_macros.h"

namespace hvd::net {
namespace {

constexpr char kEndOfHead[] = "\r\n\r\n";

absl::string_view Phrase(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Status";
  }
}

HttpResponse ErrorPage(int code) {
  return {code, HttpResponse().content_type, absl::StrCat(Phrase(code), "\n")};
}

// Whether the connection's own end is at an address of this machine that no other one reaches.
bool IsAtLoopback(int socket) {
  SocketAddress own;
  own.length = sizeof(own.storage);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&own.storage), &own.length) != 0) return true;
  return IsLoopbackAddress(NumericHost(own));
}

// The value of the header Host in the lines of a head after the first; several are of no client.
absl::StatusOr<std::string> HostHeader(const std::vector<absl::string_view>& lines) {
  std::optional<std::string> value;
  for (const absl::string_view line : lines) {
    const size_t colon = line.find(':');
    if (!absl::EqualsIgnoreCase(line.substr(0, colon), "host")) continue;
    if (value.has_value()) return absl::InvalidArgumentError("several");
    // A line without a colon has no value.
    value =
        std::string(absl::StripAsciiWhitespace(line.substr(std::min(colon, line.size() - 1) + 1)));
  }
  return value.value_or("");
}

std::string HostWithoutPort(const std::string& text) {
  absl::string_view host = text;
  // SplitHostPort leaves an address in brackets as it is if there is no port.
  if (absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]")) return std::string(host);
  return SplitHostPort(text).host;
}

class HttpListenerImpl final : public HttpListener {
 public:
  HttpListenerImpl(std::string address, Fd listener, std::unique_ptr<EventLoop> loop,
                   Handler handler)
      : address_(std::move(address)),
        loop_(std::move(loop)),
        handler_(std::move(handler)),
        acceptor_(
            *loop_, std::move(listener), [this](Fd fd) { OnConnection(std::move(fd)); },
            [this] { return MakeRoom(); }) {}

  ~HttpListenerImpl() override {
    if (!thread_.joinable()) return;
    loop_->Post([this] { loop_->Stop(); });
    thread_.join();
  }

  absl::Status Begin() {
    RETURN_IF_ERROR(acceptor_.Begin());
    thread_ = std::thread([this] { loop_->Run(); });
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }

 private:
  // Every client is a stranger: heard from its first byte on, until it has its answer.
  using Id = Strangers::Id;
  struct Connection {
    Fd fd;
    EventLoop::TimerId patience;
    std::string head;
    std::string answer;  // unsent part of the response
  };

  void OnConnection(Fd fd) {
    const int number = fd.get();
    const Id id = clients_.Add(PeerSource(number));
    const EventLoop::TimerId patience = loop_->After(kPatience, [this, id] { Drop(id); });
    connections_.emplace(id, Connection{std::move(fd), patience, "", ""});
    if (!loop_->Watch(number, EPOLLIN, [this, id](uint32_t) { OnReady(id); }).ok()) {
      return Drop(id);
    }
    KeepToTheBound();
  }

  void KeepToTheBound() {
    while (const std::optional<Id> surplus = clients_.Surplus()) Drop(*surplus);
  }

  bool MakeRoom() {
    const std::optional<Id> gone = clients_.LeastLikelyMember();
    if (gone.has_value()) Drop(*gone);
    return gone.has_value();
  }

  void OnReady(Id id) {
    Connection& connection = connections_.at(id);
    if (!connection.answer.empty()) return Send(id);
    char buffer[2048];
    const IoResult got = ReadSome(connection.fd.get(), buffer, sizeof(buffer));
    if (got.would_block) return;
    if (got.end) return Drop(id);
    clients_.Reach(id, Strangers::Stage::kHeard);
    KeepToTheBound();
    connection.head.append(buffer, got.bytes);
    const size_t end = connection.head.find(kEndOfHead);
    if (end == std::string::npos && connection.head.size() <= kLargestHead) return;
    // An incomplete head has the end npos, which is larger than kLargestHead.
    connection.answer = EncodeHttpResponse(
        end > kLargestHead
            ? ErrorPage(431)
            : Answer(connection.fd.get(), absl::string_view(connection.head).substr(0, end)));
    // From now on input is ignored: there is one request for each connection.
    loop_->Change(connection.fd.get(), EPOLLOUT);
  }

  HttpResponse Answer(int socket, absl::string_view head) {
    const HttpRequest request = ParseHttpRequest(head);
    if (request.error != 0) return ErrorPage(request.error);
    // At other addresses, names of this machine that it does not know itself are usual.
    if (IsAtLoopback(socket) && !IsHostOfThisMachine(request.host, own_name_)) {
      return {403, HttpResponse().content_type,
              absl::StrCat("the Host header is no name of this machine: ask for localhost, ",
                           own_name_, " or a numeric address\n")};
    }
    return handler_(request.path);
  }

  void Send(Id id) {
    Connection& connection = connections_.at(id);
    const int fd = connection.fd.get();
    std::string& answer = connection.answer;
    const ssize_t sent = send(fd, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    // The watch is level-triggered and calls again.
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (sent < 0) return Drop(id);
    answer.erase(0, static_cast<size_t>(sent));
    if (!answer.empty()) return;
    // close() with unread input sends a reset, which could discard the answer at the client. So the
    // stream is half-closed, and what the client has sent is read first.
    shutdown(fd, SHUT_WR);
    char rest[kLargestHead];
    (void)ReadSome(fd, rest, sizeof(rest));
    Drop(id);
  }

  void Drop(Id id) {
    const auto entry = connections_.find(id);
    loop_->Cancel(entry->second.patience);
    loop_->Forget(entry->second.fd.get());
    connections_.erase(entry);
    clients_.Remove(id);
  }

  const std::string address_;
  const std::string own_name_ = OwnHostName();
  const std::unique_ptr<EventLoop> loop_;
  const Handler handler_;
  Acceptor acceptor_;  // used by the thread only, like the two below
  Strangers clients_{kMostConnections};
  std::map<Id, Connection> connections_;  // of clients_
  std::thread thread_;
};

}  // namespace

HttpRequest ParseHttpRequest(absl::string_view head) {
  std::vector<absl::string_view> lines = absl::StrSplit(head, "\r\n");
  const std::vector<absl::string_view> words = absl::StrSplit(lines[0], ' ');
  lines.erase(lines.begin());
  const absl::StatusOr<std::string> host = HostHeader(lines);
  if (!host.ok() || words.size() != 3 || !absl::StartsWith(words[2], "HTTP/1.") ||
      !absl::StartsWith(words[1], "/")) {
    return {"", "", 400};
  }
  if (words[0] != "GET") return {"", "", 405};
  return {std::string(words[1].substr(0, words[1].find('?'))), HostWithoutPort(*host), 0};
}

bool IsHostOfThisMachine(const std::string& host, const std::string& own_name) {
  std::string name = absl::AsciiStrToLower(host);
  if (absl::EndsWith(name, ".")) name.pop_back();  // the root of DNS
  return host.empty() || !AddressBytes(name).empty() || name == "localhost" ||
         absl::EndsWith(name, ".localhost") || absl::EqualsIgnoreCase(name, own_name);
}

std::string EncodeHttpResponse(const HttpResponse& response) {
  return absl::StrCat(
      "HTTP/1.1 ", response.code, " ", Phrase(response.code),
      "\r\nContent-Type: ", response.content_type, "\r\nContent-Length: ", response.body.size(),
      response.code == 405 ? "\r\nAllow: GET" : "", "\r\nConnection: close\r\n\r\n", response.body);
}

absl::StatusOr<std::unique_ptr<HttpListener>> HttpListener::Start(const std::string& address,
                                                                  Handler handler) {
  ASSIGN_OR_RETURN(const ListenAddress parsed, ParseListenAddress(address));
  ASSIGN_OR_RETURN(Fd listener, ListenOn(parsed));
  ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Create());
  const std::string real = parsed.WithPort(BoundPort(listener.get()));
  auto result = std::make_unique<HttpListenerImpl>(real, std::move(listener), std::move(loop),
                                                   std::move(handler));
  RETURN_IF_ERROR(result->Begin());
  return result;
}

}  // namespace hvd::net
