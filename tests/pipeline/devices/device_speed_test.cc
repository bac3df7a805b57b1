// What is measured of a device, and that it is measured once.
#include "pipeline/devices/device_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/file.h"
#include "message_of.h"
#include "temporary_folder.h"

namespace braid::device_speed_test {

using testing::HasSubstr;

const TimedProduct kProduct{.rows = 256, .width = 64, .dtype = at::kFloat};

class KeptSpeed : public testing::Test {
 protected:
  double speed(const std::string& kind, const TimedProduct& product = kProduct) {
    return kept_speed(folder_ / "speeds", kind, product, [&] { return double(++measured_); });
  }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "speeds"))
      all.push_back(entry.path());
    return all;
  }

  TemporaryFolder folder_;
  int measured_ = 0;
};

TEST_F(KeptSpeed, IsMeasuredOncePerDeviceAndProduct) {
  EXPECT_EQ(speed("NVIDIA L4, 24.0 GB"), 1);
  EXPECT_EQ(speed("NVIDIA L4, 24.0 GB"), 1);
  EXPECT_EQ(speed("NVIDIA L40S, 48.0 GB"), 2);
  auto other = kProduct;
  other.dtype = at::kBFloat16;
  EXPECT_EQ(speed("NVIDIA L4, 24.0 GB", other), 3);
  other = kProduct;
  other.threads = 2;
  EXPECT_EQ(speed("NVIDIA L4, 24.0 GB", other), 4);
  EXPECT_EQ(speed("NVIDIA L4, 24.0 GB"), 1);
  EXPECT_EQ(files().size(), 4u);
}

TEST_F(KeptSpeed, IsMeasuredAgainIfItsFileIsDamagedOrAnothers) {
  (void)speed("a/b");
  const auto file = files().at(0);
  EXPECT_EQ(file.filename(), "a-b-256x64x256-float32-1-thread.json");
  const auto whole = read_file(file);
  for (const auto& text : {std::string(), whole.substr(0, whole.size() / 2), std::string("[]"),
                           std::string(R"({"device": "a/b", "product": "x", "flops": 7})"),
                           whole.substr(0, whole.find("\"flops\"")) + "\"flops\": -1,\n" +
                               whole.substr(whole.find("\"product\""))}) {
    const int before = measured_;
    std::ofstream(file) << text;
    EXPECT_EQ(speed("a/b"), before + 1) << text;
    EXPECT_EQ(speed("a/b"), before + 1) << text;
  }
  EXPECT_EQ(speed("a-b"), measured_) << "the same file name, another device";
}

TEST_F(KeptSpeed, IsMeasuredEachTimeWhereNothingCanBeKept) {
  const auto measure = [&] { return double(++measured_); };
  EXPECT_EQ(kept_speed({}, "x", kProduct, measure), 1);
  std::ofstream(folder_ / "file") << "not a folder";
  EXPECT_EQ(kept_speed(folder_ / "file", "x", kProduct, measure), 2);
  EXPECT_EQ(kept_speed(folder_ / "file", "x", kProduct, measure), 3);
}

TEST_F(KeptSpeed, IsANumberAboveZeroOrAnError) {
  for (const double wrong : {0.0, -1.0, double(NAN), double(INFINITY)})
    EXPECT_THAT(message_of<Error>([&] {
                  (void)kept_speed(folder_ / "speeds", "x", kProduct, [&] { return wrong; });
                }),
                HasSubstr("the speed of x could not be measured"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "speeds"));
}

// A product of 8 MFLOP takes between a nanosecond and a minute.
TEST(MeasuredProduct, IsTimedOnACpu) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto product = product_for(at::kCPU, 64, dtype, 1);
    EXPECT_EQ(product.flops(), 2.0 * double(product.rows) * 64 * 256);
    const auto flops = measure_product(at::kCPU, product);
    EXPECT_GT(flops, product.flops() / 60);
    EXPECT_LT(flops, product.flops() / 1e-9);
  }
}

}  // namespace braid::device_speed_test
