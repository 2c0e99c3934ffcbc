// A very small HTTP server, for machines that look how a daemon is.
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

// What a request's head (all up to the empty line) asks for: the path of a GET, without its query,
// or the answer to what is no such request: 400 or 405.
struct HttpRequest {
  std::string path;
  int error = 0;  // 0: none
};
HttpRequest ParseHttpRequest(absl::string_view head);

// The answer as it goes over the wire. The connection is closed after it.
std::string EncodeHttpResponse(const HttpResponse& response);

// Answers one request per connection, on a thread of its own. Thread-safe. Whoever has not sent its
// request or taken its answer within kPatience is dropped; a head that is longer than kLargestHead
// gets 431.
class HttpListener {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(5);
  static constexpr size_t kLargestHead = 8192;
  // As many may be connected at a time; the longest waiting makes room for a new one.
  static constexpr size_t kMostConnections = 32;

  // Called by the listener's thread, one at a time.
  using Handler = std::function<HttpResponse(const std::string& path)>;

  //   InvalidArgument: not a numeric address with a port.   Unavailable: can't listen there; says
  //   why.
  static absl::StatusOr<std::unique_ptr<HttpListener>> Start(const std::string& address,
                                                             Handler handler);
  // Drops all connections.
  virtual ~HttpListener() = default;

  // With its real port.
  virtual const std::string& address() const = 0;
};

}  // namespace hvd::net

#endif  // BASE_NET_HTTP_LISTENER_H_
