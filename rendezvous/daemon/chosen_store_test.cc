#include "rendezvous/daemon/chosen_store.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::rendezvous::daemon {
namespace {

// Files for access to etcd. Nobody is asked before they are found to be right.
class EtcdFilesTest : public testing::Test {
 protected:
  EtcdFilesTest() { options_.etcd.endpoints = {"127.0.0.1:1"}; }
  ~EtcdFilesTest() override {
    for (const char* name : {"ca", "certificate", "key"}) std::remove(PathOf(name).c_str());
  }

  static std::string PathOf(const char* name) {
    return absl::StrCat(testing::TempDir(), "/chosen_store_test_", getpid(), "_", name);
  }
  static std::string FileWith(const char* name, const std::string& text) {
    std::ofstream(PathOf(name)) << text;
    return PathOf(name);
  }
  // A candidate that gives up at once, if it comes to that.
  std::string Refusal() {
    const absl::Status status =
        OpenChosenStore(options_, {[](const std::string&) {}, [] { return true; }}).status();
    return absl::IsCancelled(status) ? "" : std::string(status.message());
  }

  RendezvousdOptions options_;
};

TEST_F(EtcdFilesTest, InvalidCertificate_IsRefusedByName) {
  options_.etcd.ca = FileWith("ca", "not a certificate\n");
  EXPECT_EQ(Refusal(), "--etcd-ca: " + PathOf("ca") + " holds no certificate in PEM format");
  options_.etcd.ca = "/dev/zero";
  EXPECT_EQ(Refusal(), "--etcd-ca: /dev/zero can't be read: it is longer than 1 MiB");
  options_.etcd.ca = FileWith("ca", "");
  EXPECT_EQ(Refusal(), "--etcd-ca: " + PathOf("ca") + " is empty");
}

TEST_F(EtcdFilesTest, KeyOfAnotherCertificate_IsRefused) {
  const auto authority = security::JobAuthority::Create("job");
  const auto own = (*authority)->IssueForHost("a");
  options_.etcd.ca = FileWith("ca", own->ca_certificate);
  EXPECT_EQ(Refusal(), "");
  options_.etcd.certificate = FileWith("certificate", own->certificate);
  options_.etcd.key = FileWith("key", own->private_key);
  EXPECT_EQ(Refusal(), "");
  FileWith("key", (*authority)->IssueForHost("b")->private_key);
  EXPECT_EQ(Refusal(),
            absl::StrCat("--etcd-cert and --etcd-key: ", PathOf("certificate"), " and ",
                         PathOf("key"), " don't fit: the private key is not the certificate's"));
}

}  // namespace
}  // namespace hvd::rendezvous::daemon
