#include "rendezvous/security/protobuf_log.h"

#include "gtest/gtest.h"
#include "proto/agent.pb.h"

namespace hvd::rendezvous::security {
namespace {

std::string PrintedByABadMessage() {
  pb::AgentHello hello;
  hello.set_host("\xff");
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(pb::AgentHello().ParseFromString(hello.SerializeAsString()));
  return ::testing::internal::GetCapturedStderr();
}

TEST(ProtobufLog, SilenceProtobuf_TextThatIsNotUtf8_PrintsNothing) {
  EXPECT_NE(PrintedByABadMessage(), "");
  SilenceProtobuf();
  EXPECT_EQ(PrintedByABadMessage(), "");
}

}  // namespace
}  // namespace hvd::rendezvous::security
