#include "rendezvous/security/protobuf_log.h"

#include "gtest/gtest.h"
#include "proto/credentials.pb.h"

namespace hvd::rendezvous::security {
namespace {

std::string PrintedByABadMessage() {
  pb::Credentials message;
  message.set_token("\xff");
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(pb::Credentials().ParseFromString(message.SerializeAsString()));
  return ::testing::internal::GetCapturedStderr();
}

TEST(ProtobufLog, SilenceProtobuf_TextThatIsNotUtf8_PrintsNothing) {
  EXPECT_NE(PrintedByABadMessage(), "");
  SilenceProtobuf();
  EXPECT_EQ(PrintedByABadMessage(), "");
}

}  // namespace
}  // namespace hvd::rendezvous::security
