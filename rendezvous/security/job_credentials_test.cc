#include "rendezvous/security/job_credentials.h"

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::security {
namespace {

TEST(JobAuthorityTest, Issued_ShareTokenAndCa_AndHaveOwnKeys) {
  auto authority = JobAuthority::Create("job");
  ASSERT_TRUE(authority.ok()) << authority.status();
  const auto daemon = (*authority)->IssueForDaemon();
  const auto host = (*authority)->IssueForHost("a");
  ASSERT_TRUE(daemon.ok() && host.ok());
  EXPECT_EQ(daemon->token, host->token);
  EXPECT_EQ(daemon->ca_certificate, host->ca_certificate);
  EXPECT_NE(daemon->private_key, host->private_key);
  EXPECT_NE(daemon->certificate, host->certificate);
}

TEST(JobAuthorityTest, Token_Has256BitsAndIsTheJobsOwn) {
  const auto one = (*JobAuthority::Create("job"))->IssueForHost("a");
  const auto other = (*JobAuthority::Create("job"))->IssueForHost("a");
  EXPECT_EQ(one->token.size(), 64u);
  EXPECT_NE(one->token, other->token);
  EXPECT_NE(one->ca_certificate, other->ca_certificate);
}

TEST(JobAuthorityTest, IssueForHost_WithoutAName_SaysWhatFailed) {
  const auto issued = (*JobAuthority::Create("job"))->IssueForHost("");
  EXPECT_EQ(issued.status().code(), absl::StatusCode::kInternal);
  EXPECT_NE(issued.status().message().find("name a certificate"), absl::string_view::npos);
}

TEST(JobAuthorityTest, IssueForHost_FromManyThreads) {
  auto authority = JobAuthority::Create("job");
  ASSERT_TRUE(authority.ok());
  std::vector<std::thread> threads;
  std::vector<std::string> certificates(8);
  for (size_t i = 0; i < certificates.size(); ++i) {
    threads.emplace_back([&authority, &certificates, i] {
      certificates[i] = (*authority)->IssueForHost("host").value().certificate;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<std::string>(certificates.begin(), certificates.end()).size(), 8u);
}

TEST(NewJobIdTest, Is32HexDigitsAndNew) {
  const std::string id = NewJobId();
  EXPECT_EQ(id.size(), 32u);
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(id, NewJobId());
}

}  // namespace
}  // namespace hvd::rendezvous::security
