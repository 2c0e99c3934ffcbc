// A scheduler of jobs on a RendezvousServer, and their workers, for tests.
#ifndef RENDEZVOUS_SERVER_RENDEZVOUS_SERVER_TEST_UTIL_H_
#define RENDEZVOUS_SERVER_RENDEZVOUS_SERVER_TEST_UTIL_H_

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <future>
#include <string>

#include "base/fd.h"
#include "base/net/frames.h"
#include "gtest/gtest.h"
#include "proto/agent.pb.h"
#include "rendezvous/client/grpc_rendezvous_client.h"
#include "rendezvous/server/in_process_test_util.h"
#include "rendezvous/server/server.h"

namespace hvd::rendezvous::server {

// The callbacks of a job, recorded.
struct Scheduler {
  Inbox<WorkerStart> starts;
  Inbox<WorkerId> stops;
  Inbox<std::string> free_hosts;
  Inbox<membership::Verdict> verdicts;

  ServedJobOptions Options(int min, int max) {
    ServedJobOptions options;
    options.spec.min_workers = min;
    options.spec.max_workers = max;
    options.spec.start_workers = min;
    options.spec.elastic.emplace();
    options.start_worker = [this](const WorkerStart& start) { starts.Put(start); };
    options.stop_worker = [this](WorkerId worker, absl::Duration) { stops.Put(worker); };
    options.on_host_free = [this](const std::string& host) { free_hosts.Put(host); };
    options.on_finished = [this](const membership::Verdict& verdict) { verdicts.Put(verdict); };
    return options;
  }
};

// The answer that a worker with this environment gets.
inline pb::WorkerBootstrap Bootstrap(const Environment& environment) {
  const std::string& names = environment.at("HOROVOD_AGENT_SOCKET");
  const std::string name = names.substr(0, names.find(','));
  const Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path + 1, name.data(), name.size());
  const socklen_t length = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  pb::WorkerHello hello;
  hello.set_worker_id(std::stoull(environment.at("HOROVOD_WORKER_ID")));
  hello.set_word(environment.at("HOROVOD_WORKER_WORD"));
  EXPECT_TRUE(net::WriteFrame(fd.get(), hello.SerializeAsString()).ok());
  pb::WorkerBootstrap answer;
  const auto frame = net::ReadFrame(fd.get(), net::kMaxFrameBytes);
  EXPECT_TRUE(frame.ok() && answer.ParseFromString(*frame)) << frame.status();
  return answer;
}

// Plays a worker: joins the world and returns its placement.
inline std::future<absl::StatusOr<pb::JoinWorldResponse>> Join(const pb::WorkerBootstrap& told) {
  return std::async(std::launch::async, [told] {
    const pb::Credentials& given = told.credentials();
    const auto client = client::NewGrpcRendezvousClient(
        told.daemon_address(),
        {given.token(), given.ca_certificate(), given.certificate(), given.private_key()});
    pb::JoinWorldRequest request;
    request.mutable_worker()->set_worker_id(told.worker_id());
    request.mutable_worker()->set_incarnation(100 + told.worker_id());
    request.set_address(told.advertise_address());
    request.set_port(1);
    return client->JoinWorld(request, absl::InfiniteDuration());
  });
}

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_RENDEZVOUS_SERVER_TEST_UTIL_H_
