#include "base/net/http_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "base/fd.h"
#include "base/net/local_network.h"
#include "base/net/strangers_test_util.h"
#include "gtest/gtest.h"

namespace hvd::net {
namespace {

TEST(ParseHttpRequestTest, Get_GivesThePath) {
  EXPECT_EQ(ParseHttpRequest("GET /metrics HTTP/1.1\r\nHost: x").path, "/metrics");
  EXPECT_EQ(ParseHttpRequest("GET /metrics?a=b HTTP/1.0").path, "/metrics");
}

TEST(ParseHttpRequestTest, Host_IsGivenWithoutItsPort) {
  const std::pair<const char*, const char*> cases[] = {
      {"Host: a.example:9090", "a.example"},
      {"A: b\r\nhOST:a.example ", "a.example"},
      {"Host: [::1]:9090", "::1"},
      {"Host: [::1]", "::1"},
      {"Host: 127.0.0.1", "127.0.0.1"},
      {"Host:", ""},
      {"X-Host: a", ""},
  };
  for (const auto& [header, host] : cases) {
    const HttpRequest request = ParseHttpRequest(std::string("GET / HTTP/1.1\r\n") + header);
    EXPECT_EQ(request.error, 0) << header;
    EXPECT_EQ(request.host, host) << header;
  }
  EXPECT_EQ(ParseHttpRequest("GET / HTTP/1.1\r\nHost: a\r\nhost: b").error, 400);
}

TEST(IsHostOfThisMachineTest, NamesThatAnAttackersDnsCantAnswer_AreIts) {
  for (const char* host : {"", "127.0.0.1", "::1", "10.0.0.1", "fe80::1", "localhost", "LocalHost.",
                           "a.localhost", "node1", "NODE1", "node1."}) {
    EXPECT_TRUE(IsHostOfThisMachine(host, "node1")) << host;
  }
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
                           "node1.evil.example", "evillocalhost", "node", "127.0.0.1 ", "."}) {
    EXPECT_FALSE(IsHostOfThisMachine(host, "node1")) << host;
  }
}

TEST(ParseHttpRequestTest, OtherMethodThanGet_IsRefused) {
  EXPECT_EQ(ParseHttpRequest("POST /metrics HTTP/1.1").error, 405);
  for (const char* head : {"", "GET", "GET /metrics", "GET metrics HTTP/1.1", "GET /a b HTTP/1.1",
                           "GET /metrics HTTP/2.0", "\x16\x03\x01\x02 not http"}) {
    EXPECT_EQ(ParseHttpRequest(head).error, 400) << head;
  }
}

TEST(EncodeHttpResponseTest, IsWhole) {
  EXPECT_EQ(EncodeHttpResponse({200, "text/plain", "ok\n"}),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n"
            "Connection: close\r\n\r\nok\n");
}

class HttpListenerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto listener = HttpListener::Start("127.0.0.1:0", [this](const std::string& path) {
      if (path != "/here") return HttpResponse{404, "text/plain", "no\n"};
      return HttpResponse{200, "text/plain", body_};
    });
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = std::move(listener).value();
  }

  Fd Connect() {
    int port = 0;
    const std::string& address = listener_->address();
    EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    return fd;
  }

  static void Send(const Fd& fd, const std::string& text) {
    EXPECT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }

  // Reads until the peer closes the connection.
  static std::string Rest(const Fd& fd) {
    std::string text;
    char buffer[4096];
    while (true) {
      const IoResult got = ReadSome(fd.get(), buffer, sizeof(buffer));
      if (got.end) return text;
      text.append(buffer, got.bytes);
    }
  }

  std::string body_ = "hello\n";
  std::unique_ptr<HttpListener> listener_;
};

TEST_F(HttpListenerTest, Get_IsAnsweredAndTheConnectionClosed) {
  const Fd fd = Connect();
  Send(fd, "GET /here HTTP/1.1\r\n\r\n");
  const std::string answer = Rest(fd);
  EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_TRUE(absl::EndsWith(answer, "\r\n\r\nhello\n")) << answer;
}

TEST_F(HttpListenerTest, RequestInPieces_IsUnderstood) {
  const Fd fd = Connect();
  for (const char c : std::string("GET /here HTTP/1.1\r\nA: b\r\n\r\n")) Send(fd, {c});
  EXPECT_TRUE(absl::EndsWith(Rest(fd), "hello\n"));
}

TEST_F(HttpListenerTest, LargeAnswer_ArrivesWhole) {
  body_.assign(10 << 20, 'x');
  const Fd fd = Connect();
  Send(fd, "GET /here HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(absl::EndsWith(Rest(fd), "\r\n\r\n" + body_));
}

TEST_F(HttpListenerTest, OneReaderTakesNothing_OthersGetTheirs) {
  body_.assign(10 << 20, 'x');  // more than the connection holds
  const Fd slow = Connect();
  Send(slow, "GET /here HTTP/1.1\r\n\r\n");
  char first = 0;
  ASSERT_EQ(read(slow.get(), &first, 1), 1);  // it is being sent
  const Fd other = Connect();
  Send(other, "GET /here HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(absl::EndsWith(Rest(other), "\r\n\r\n" + body_));
}

TEST_F(HttpListenerTest, WhatCantBeAnswered_GetsItsCode) {
  const std::pair<std::string, std::string> cases[] = {
      {"GET /there HTTP/1.1\r\n\r\n", "HTTP/1.1 404 "},
      {"PUT /here HTTP/1.1\r\n\r\n", "HTTP/1.1 405 "},
      {"hello\r\n\r\n", "HTTP/1.1 400 "},
      {"GET /" + std::string(HttpListener::kLargestHead, 'a'), "HTTP/1.1 431 "},
  };
  for (const auto& [request, answer] : cases) {
    const Fd fd = Connect();
    Send(fd, request);
    EXPECT_TRUE(absl::StartsWith(Rest(fd), answer)) << answer;
  }
}

TEST_F(HttpListenerTest, NameOfAnotherMachineAtLoopback_IsRefused) {
  const auto answer = [this](const std::string& host) {
    const Fd fd = Connect();
    Send(fd, "GET /here HTTP/1.1\r\nHost: " + host + ":9090\r\n\r\n");
    return Rest(fd);
  };
  EXPECT_TRUE(absl::StartsWith(answer("evil.example"), "HTTP/1.1 403 Forbidden\r\n"));
  for (const std::string& host :
       std::vector<std::string>{"localhost", "127.0.0.1", OwnHostName()}) {
    EXPECT_TRUE(absl::StartsWith(answer(host), "HTTP/1.1 200 OK\r\n")) << host;
  }
}

TEST_F(HttpListenerTest, ManySilentConnections_DoNotKeepOthersOut) {
  std::vector<Fd> silent;
  for (size_t i = 0; i < 2 * HttpListener::kMostConnections; ++i) silent.push_back(Connect());
  const Fd fd = Connect();
  Send(fd, "GET /here HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(absl::EndsWith(Rest(fd), "hello\n"));
  EXPECT_EQ(Rest(silent.front()), "") << "it made room";
}

// A health check whose request is on its way keeps its place, however many come from elsewhere.
TEST_F(HttpListenerTest, CrowdFromAnotherAddress_CostsASlowClientNothing) {
  const Fd silent = ConnectFrom("127.0.0.1", listener_->address());
  const Fd slow = ConnectFrom("127.0.0.1", listener_->address());
  Send(slow, "GET /here HT");
  std::vector<Fd> crowd;
  for (size_t i = 0; i < 2 * HttpListener::kMostConnections; ++i) {
    crowd.push_back(ConnectFrom("127.0.0.2", listener_->address()));
    crowd.push_back(ConnectFrom("127.0.0.2", listener_->address()));
    Send(crowd.back(), "GET /here HT");
  }
  for (const Fd* made_room : {&crowd[0], &crowd[1]}) EXPECT_EQ(Rest(*made_room), "");
  Send(slow, "TP/1.1\r\n\r\n");
  Send(silent, "GET /here HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(absl::EndsWith(Rest(slow), "hello\n"));
  EXPECT_TRUE(absl::EndsWith(Rest(silent), "hello\n"));
}

TEST_F(HttpListenerTest, Destructor_DropsClients) {
  const Fd fd = Connect();
  listener_.reset();
  EXPECT_EQ(Rest(fd), "");
}

TEST_F(HttpListenerTest, Start_WhereItCant_SaysWhy) {
  const auto nothing = [](const std::string&) { return HttpResponse(); };
  EXPECT_EQ(HttpListener::Start("localhost:80", nothing).status().code(),
            absl::StatusCode::kInvalidArgument);
  const absl::Status taken = HttpListener::Start(listener_->address(), nothing).status();
  EXPECT_EQ(taken.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(taken.message(), listener_->address())) << taken;
}

}  // namespace
}  // namespace hvd::net
