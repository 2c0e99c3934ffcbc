#include "base/crypto.h"

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace hvd {
namespace {

// RFC 4231, test cases 1, 2 and 6 (a key longer than a block).
TEST(CryptoTest, HmacSha256_KnownAnswers) {
  EXPECT_EQ(absl::BytesToHexString(HmacSha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(absl::BytesToHexString(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(
      absl::BytesToHexString(HmacSha256(std::string(131, '\xaa'),
                                        "Test Using Larger Than Block-Size Key - Hash Key First")),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(CryptoTest, HmacSha256_EmptyKeyAndMessage) {
  EXPECT_EQ(absl::BytesToHexString(HmacSha256("", "")),
            "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(CryptoTest, CheckHmacSha256_AnyBitOrLengthOff_False) {
  const std::string proof = HmacSha256("key", "message");
  EXPECT_TRUE(CheckHmacSha256("key", "message", proof));
  for (size_t i = 0; i < proof.size(); ++i) {
    std::string other = proof;
    other[i] = static_cast<char>(other[i] ^ 1);
    EXPECT_FALSE(CheckHmacSha256("key", "message", other)) << i;
  }
  EXPECT_FALSE(CheckHmacSha256("key", "message", proof.substr(1)));
  EXPECT_FALSE(CheckHmacSha256("key", "message", proof + "x"));
  EXPECT_FALSE(CheckHmacSha256("key", "message", ""));
  EXPECT_FALSE(CheckHmacSha256("yek", "message", proof));
}

TEST(CryptoTest, ConstantTimeEquals_EqualAndOther) {
  EXPECT_TRUE(ConstantTimeEquals("", ""));
  EXPECT_TRUE(ConstantTimeEquals("token", "token"));
  EXPECT_FALSE(ConstantTimeEquals("token", "tokem"));
  EXPECT_FALSE(ConstantTimeEquals("token", "toke"));
}

TEST(CryptoTest, RandomBytes_AsManyAsAsked_NeverTheSame) {
  EXPECT_EQ(RandomBytes(0), "");
  EXPECT_EQ(RandomBytes(1000).size(), 1000u);
  EXPECT_NE(RandomBytes(32), RandomBytes(32));
}

}  // namespace
}  // namespace hvd
