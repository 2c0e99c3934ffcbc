// A test fixture: a rendezvous server of one job, and the job file that names it.
#ifndef LAUNCHER_SERVED_JOB_TEST_UTIL_H_
#define LAUNCHER_SERVED_JOB_TEST_UTIL_H_

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "launcher/job/job_file.h"
#include "rendezvous/security/credentials_message.h"
#include "rendezvous/server/server.h"

namespace hvd::launcher {

// `directory_` is the realm of the job files, empty at first; it is removed in the end.
class ServedJobFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = ::testing::TempDir() + "/job.XXXXXX";
    ASSERT_NE(mkdtemp(directory_.data()), nullptr);
    auto authority = *rendezvous::security::JobAuthority::Create("4711abcdef");
    rendezvous::server::ServerOptions options;
    options.job_id = "4711abcdef";
    options.listen = {"127.0.0.1:0"};
    options.credentials = *authority->IssueForDaemon();
    auto server = rendezvous::server::Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    job_.set_job_id(options.job_id);
    job_.set_pid(7);
    job_.set_command("python train.py");
    job_.add_addresses(server_->addresses()[0]);
    *job_.mutable_credentials() =
        rendezvous::security::ToMessage(*authority->IssueForHost("control"));
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // Writes the job's file, under this id; removed with the result.
  std::unique_ptr<job::JobFile> Register(const std::string& id) {
    pb::JobFile job = job_;
    job.set_job_id(id);
    return *job::JobFile::Write(directory_, job);
  }

  std::string directory_;
  std::unique_ptr<rendezvous::server::Server> server_;
  pb::JobFile job_;
};

}  // namespace hvd::launcher

#endif  // LAUNCHER_SERVED_JOB_TEST_UTIL_H_
