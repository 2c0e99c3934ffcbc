// The HTTP endpoints of the daemon: /metrics, /healthz and /readyz.
#ifndef RENDEZVOUS_SERVER_STATUS_PAGES_H_
#define RENDEZVOUS_SERVER_STATUS_PAGES_H_

#include <string>

#include "base/net/http_listener.h"
#include "rendezvous/server/server.h"

namespace hvd::rendezvous::server {

// Answers a request:
// - /metrics: the job's metrics in Prometheus' text format;
// - /healthz: "ok", or 503 if the job's thread has been busy for kHealthPatience;
// - /readyz: the job's state and what it waits for; 503 once it is over;
// - any other path: 404.
// Returns 503 without querying the job if its thread has been busy for kAnswerPatience.
inline constexpr absl::Duration kHealthPatience = absl::Seconds(10);
inline constexpr absl::Duration kAnswerPatience = absl::Seconds(2);
net::HttpResponse AnswerStatusPage(const std::string& path, Server& server);

// Answers a request to a daemon that serves no job yet, since it waits for the leadership: /healthz
// as above, so that no orchestrator restarts it; /metrics and /readyz with 503.
net::HttpResponse AnswerStandbyPage(const std::string& path);

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_STATUS_PAGES_H_
