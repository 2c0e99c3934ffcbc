// A minimal HTTP/1.1 server for health checks and Prometheus scrapes.
#ifndef BASE_NET_HTTP_LISTENER_H_
#define BASE_NET_HTTP_LISTENER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hvd::net {

struct HttpResponse {
  int code = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// The parsed head of a request (all lines before the empty line): the path of a GET without its
// query and the host that the client has asked for without its port, or the status code of the
// error response, 400 or 405.
struct HttpRequest {
  std::string path;
  std::string host;  // without brackets; empty: the client does not say
  int error = 0;     // 0: none
};
HttpRequest ParseHttpRequest(absl::string_view head);

// Whether a browser of this machine that asks for `host` means this machine: a numeric address, a
// name of loopback, or `own_name`, the machine's. Any other name may be that of an attacker's page,
// whose DNS server now gives this machine's address for it (DNS rebinding), and the browser would
// let the page read the answer. An empty host comes from no browser.
bool IsHostOfThisMachine(const std::string& host, const std::string& own_name);

// Returns the response in wire format, with the header "Connection: close".
std::string EncodeHttpResponse(const HttpResponse& response);

// Answers one request per connection, on a separate thread. To a connection at a loopback address
// it answers only if IsHostOfThisMachine, otherwise with 403. Drops a client that has not sent its
// request or received its answer within kPatience, and answers a head longer than kLargestHead with
// 431. Thread-safe.
class HttpListener {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(5);
  static constexpr size_t kLargestHead = 8192;
  // The limit of clients that have sent nothing yet, and of others. Beyond it one goes, of the
  // address with the most of them (net::Strangers).
  static constexpr size_t kMostConnections = 32;

  // Called by the listener's thread, one call at a time.
  using Handler = std::function<HttpResponse(const std::string& path)>;

  // Errors:
  //   - InvalidArgument: not a numeric address with a port.
  //   - Unavailable: can't listen at the address; says why.
  static absl::StatusOr<std::unique_ptr<HttpListener>> Start(const std::string& address,
                                                             Handler handler);
  // Drops all connections.
  virtual ~HttpListener() = default;

  // The address with its real port.
  virtual const std::string& address() const = 0;
};

}  // namespace hvd::net

#endif  // BASE_NET_HTTP_LISTENER_H_
