// Files of latents: their numbers, however they are stored.
#include "app/files/latents_file.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "message_of.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"

namespace braid::latents_file_test {

using testing::ElementsAre;

TEST(LatentsFiles, AreReadAsFloatsWhateverTheirDtype) {
  const TemporaryFolder folder;
  const auto path = folder / "latents.safetensors";
  for (const auto dtype : {at::kFloat, at::kHalf, at::kBFloat16, at::kDouble, at::kFloat8_e4m3fn}) {
    write_file(path, write_safetensors({{"latents", at::tensor({1.5f, -2.f}).to(dtype)}}));
    const auto read = read_latents(path);
    EXPECT_THAT(read.shape, ElementsAre(2));
    EXPECT_THAT(read.values, ElementsAre(1.5f, -2.f)) << dtype;
  }
  write_file(path, write_safetensors({{"latents", at::ones({2}, at::kInt)}}));
  EXPECT_THAT(message_of([&] { (void)read_latents(path); }),
              testing::HasSubstr("should hold floating-point numbers, it holds I32"));
}

TEST(LatentsFiles, AreTheNumbersOfTheirCodes) {
  const TemporaryFolder folder;
  const auto path = folder / "latents.safetensors";
  const auto codes = at::tensor({1.5f, -2.f}).to(at::kFloat8_e4m3fn);
  for (const std::string name : {"latents", "x.weight"}) {
    write_file(path, write_safetensors({{name, codes}, {name + "_scale", at::full({}, 0.5f)}}));
    EXPECT_THAT(read_latents(path).values, ElementsAre(0.75f, -1.f)) << name;
  }
}

TEST(LatentsFiles, GiveThoseOfOnePicture) {
  const TemporaryFolder folder;
  const auto path = folder / "latents.safetensors";
  write_file(path, write_safetensors({{"latents", at::arange(6, at::kFloat).view({3, 1, 2})}}));
  const auto second = read_latents(path, 2);
  EXPECT_THAT(second.shape, ElementsAre(1, 1, 2));
  EXPECT_THAT(second.values, ElementsAre(2, 3));
  EXPECT_THAT(message_of([&] { (void)read_latents(path, 4); }),
              testing::HasSubstr("should have the latents of 4 pictures, as picture 4 is asked "
                                 "for, it has those of 3"));
}

}  // namespace braid::latents_file_test
