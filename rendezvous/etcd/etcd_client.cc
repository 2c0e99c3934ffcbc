#include "rendezvous/etcd/etcd_client.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "proto/etcd.grpc.pb.h"
#include "rendezvous/etcd/lease_schedule.h"
#include "rendezvous/security/tls_credentials.h"
#include "rendezvous/transport/connection.h"
#include "rendezvous/transport/grpc_status.h"

namespace hvd::rendezvous::etcd {
namespace {

// The time limit for one member's answer. etcd's own limit for writes is longer.
constexpr absl::Duration kPatience = absl::Seconds(2);
// The time limit for a call, whatever the number of members: after it, another daemon may lead.
constexpr absl::Duration kLimit = LeaseSchedule::kLease;

struct Member {
  explicit Member(const std::shared_ptr<grpc::Channel>& channel)
      : kv(etcdserverpb::KV::NewStub(channel)),
        lease(etcdserverpb::Lease::NewStub(channel)),
        auth(etcdserverpb::Auth::NewStub(channel)) {}

  std::unique_ptr<etcdserverpb::KV::Stub> kv;
  std::unique_ptr<etcdserverpb::Lease::Stub> lease;
  std::unique_ptr<etcdserverpb::Auth::Stub> auth;
};

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const EtcdAccess& access) {
  security::KeepGrpc();
  if (access.ca_certificate.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = access.ca_certificate;
  options.pem_cert_chain = access.certificate;
  options.pem_private_key = access.private_key;
  return grpc::SslCredentials(options);
}

class EtcdClient final : public KeyValueStore {
 public:
  explicit EtcdClient(const EtcdAccess& access)
      : name_(absl::StrJoin(access.endpoints, ",")), access_(access) {
    const auto credentials = CredentialsOf(access);
    for (const std::string& endpoint : access.endpoints) {
      // One channel for each member. With one channel for all, gRPC would stay with a member as
      // long as it is connected, even if that is cut off from the other members.
      members_.emplace_back(transport::NewForeignChannel(endpoint, credentials));
    }
  }

  const std::string& name() const override { return name_; }

  absl::StatusOr<etcdserverpb::RangeResponse> Range(const etcdserverpb::RangeRequest& request,
                                                    absl::Duration limit) override {
    etcdserverpb::RangeResponse response;
    RETURN_IF_ERROR(Call(limit, [&](Member& member, grpc::ClientContext* context) {
      return member.kv->Range(context, request, &response);
    }));
    return response;
  }

  absl::StatusOr<etcdserverpb::TxnResponse> Txn(const etcdserverpb::TxnRequest& request) override {
    etcdserverpb::TxnResponse response;
    RETURN_IF_ERROR(Call(kLimit, [&](Member& member, grpc::ClientContext* context) {
      return member.kv->Txn(context, request, &response);
    }));
    return response;
  }

  absl::StatusOr<int64_t> GrantLease(absl::Duration length) override {
    etcdserverpb::LeaseGrantRequest request;
    request.set_ttl(absl::ToInt64Seconds(length));
    etcdserverpb::LeaseGrantResponse response;
    RETURN_IF_ERROR(Call(kLimit, [&](Member& member, grpc::ClientContext* context) {
      return member.lease->LeaseGrant(context, request, &response);
    }));
    return response.id();
  }

  absl::StatusOr<bool> KeepAlive(int64_t lease, absl::Duration limit) override {
    etcdserverpb::LeaseKeepAliveRequest request;
    request.set_id(lease);
    etcdserverpb::LeaseKeepAliveResponse response;
    RETURN_IF_ERROR(Call(limit, [&](Member& member, grpc::ClientContext* context) {
      const auto stream = member.lease->LeaseKeepAlive(context);
      const bool answered = stream->Write(request) && stream->Read(&response);
      if (!answered) return stream->Finish();
      context->TryCancel();  // a keep-alive stream is meant to stay open; one answer is enough
      (void)stream->Finish();
      return grpc::Status::OK;
    }));
    // etcd answers for an unknown lease with a TTL of 0, and not with an error.
    return response.ttl() > 0;
  }

  absl::Status RevokeLease(int64_t lease) override {
    etcdserverpb::LeaseRevokeRequest request;
    request.set_id(lease);
    etcdserverpb::LeaseRevokeResponse response;
    return Call(kLimit, [&](Member& member, grpc::ClientContext* context) {
      return member.lease->LeaseRevoke(context, request, &response);
    });
  }

 private:
  using Attempt = std::function<grpc::Status(Member&, grpc::ClientContext*)>;

  // gRPC reconnects to a member that was unreachable only while a call waits for the connection. So
  // if no member answers at once, the second round waits for each.
  absl::Status Call(absl::Duration limit, const Attempt& attempt) {
    const absl::Time end = Clock::Real().Now() + limit;
    const absl::Status status = CallAnyMember(attempt, /*wait=*/false, end);
    return IsAway(status) ? CallAnyMember(attempt, /*wait=*/true, end) : status;
  }

  static bool IsAway(const absl::Status& status) {
    return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  }

  absl::Status CallAnyMember(const Attempt& attempt, bool wait, absl::Time end) {
    absl::Status status;
    // A member that does not answer may have carried out the request. The next one then gets it a
    // second time: a transaction compares its preconditions, and a second lease expires unused.
    const size_t first = preferred_;
    for (size_t i = 0; i < members_.size(); ++i) {
      const size_t number = (first + i) % members_.size();
      const absl::Status answer = CallMember(members_[number], attempt, wait, end);
      if (answer.ok()) preferred_ = number;
      // Any other error is etcd's answer, which every member would give.
      if (!IsAway(answer)) return answer;
      // Prefer "unavailable", with the reason of the failed connection, to "deadline exceeded".
      if (status.ok() || absl::IsUnavailable(answer)) status = answer;
    }
    // The first one gets the most time (see Try), so each has its turn.
    preferred_ = (first + 1) % members_.size();
    return status;
  }

  absl::Status CallMember(Member& member, const Attempt& attempt, bool wait, absl::Time end) {
    const std::string token = Token();
    // etcd rejects a call without a token as an invalid argument (the user's name is empty), which
    // would not lead to the login below.
    const bool has_none = token.empty() && !access_.user.empty();
    const absl::Status status =
        has_none ? absl::UnauthenticatedError("") : Try(member, attempt, token, wait, end);
    if (!absl::IsUnauthenticated(status) || access_.user.empty()) return status;
    RETURN_IF_ERROR(Authenticate(member, wait, end));  // no token yet, or it has expired
    return Try(member, attempt, Token(), wait, end);
  }

  // Takes at most half of the time until `end`, which leaves some for each further member.
  static absl::Status Try(Member& member, const Attempt& attempt, const std::string& token,
                          bool wait, absl::Time end) {
    const absl::Duration patience =
        std::min(wait ? kPatience / 2 : kPatience, (end - Clock::Real().Now()) / 2);
    grpc::ClientContext context;
    context.set_deadline(gpr_time_from_millis(absl::ToInt64Milliseconds(patience), GPR_TIMESPAN));
    context.set_wait_for_ready(wait);
    // Makes a member without a leader reject the call at once.
    context.AddMetadata("hasleader", "true");
    if (!token.empty()) context.AddMetadata("token", token);
    return transport::FromGrpcStatus(attempt(member, &context));
  }

  absl::Status Authenticate(Member& member, bool wait, absl::Time end) {
    etcdserverpb::AuthenticateRequest request;
    request.set_name(access_.user);
    request.set_password(access_.password);
    etcdserverpb::AuthenticateResponse response;
    RETURN_IF_ERROR(Try(
        member,
        [&](Member& asked, grpc::ClientContext* context) {
          return asked.auth->Authenticate(context, request, &response);
        },
        "", wait, end));
    absl::MutexLock lock(&mu_);
    token_ = response.token();
    return absl::OkStatus();
  }

  std::string Token() {
    absl::MutexLock lock(&mu_);
    return token_;
  }

  const std::string name_;
  const EtcdAccess access_;
  std::vector<Member> members_;
  std::atomic<size_t> preferred_{0};
  absl::Mutex mu_;
  std::string token_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<KeyValueStore> NewEtcdClient(const EtcdAccess& access) {
  return std::make_unique<EtcdClient>(access);
}

}  // namespace hvd::rendezvous::etcd
