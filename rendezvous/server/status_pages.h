// The daemon's status pages over HTTP: /metrics, /healthz and /readyz.
#ifndef RENDEZVOUS_SERVER_STATUS_PAGES_H_
#define RENDEZVOUS_SERVER_STATUS_PAGES_H_

#include <string>

#include "base/net/http_listener.h"
#include "rendezvous/server/server.h"

namespace hvd::rendezvous::server {

// /metrics: the job in Prometheus' text format. /healthz: "ok", or 503 if the job's thread has
// been busy for kHealthPatience. /readyz: the job's state and what it waits for,
// 503 once it is over. Anything else: 404. A job that hangs for kAnswerPatience is not asked: 503.
inline constexpr absl::Duration kHealthPatience = absl::Seconds(10);
inline constexpr absl::Duration kAnswerPatience = absl::Seconds(2);
net::HttpResponse AnswerStatusPage(const std::string& path, Server& server);

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_STATUS_PAGES_H_
