// Denoisers in files whose names stand behind ComfyUI's prefixes, whoever named the layers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/families/family.h"
#include "pipeline/files/model_files.h"
#include "pipeline/files/model_folder.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"

namespace braid::prefixed_files_test {

namespace fs = std::filesystem;

const fs::path kParity = fs::path(BRAID_SOURCE_DIR) / "tests/data/parity";

class PrefixedFiles : public testing::TestWithParam<std::string> {
 protected:
  fs::path with_prefix(const std::string& prefix) const {
    std::map<std::string, Tensor> tensors;
    const auto own = Checkpoint::open(model() / "transformer", "diffusion_pytorch_model");
    for (const auto& [name, stored] : own.tensors()) tensors[prefix + name] = stored.view();
    write_file(folder_ / "m.safetensors", write_safetensors(tensors));
    return folder_ / "m.safetensors";
  }
  static fs::path model() { return kParity / GetParam() / "model"; }
  const TemporaryFolder folder_;
};

TEST_P(PrefixedFiles, HoldTheirDenoiser) {
  const auto family =
      open_family({.folder = model(), .single_file = {}, .family = &family_of_directory(model())});
  for (const std::string prefix : {"model.diffusion_model.", "diffusion_model.", "model.", ""}) {
    const auto search = find_part(with_prefix(prefix), family->part(Part::Role::kDenoiser));
    EXPECT_TRUE(search.found) << prefix << ": " << search.why_not;
  }
}

// A directory's part may have them, too; not JoyAI's, whose names have no table.
class PrefixedNames : public PrefixedFiles {};

TEST_P(PrefixedNames, AreReadByTheirFamiliesTables) {
  const auto family =
      open_family({.folder = model(), .single_file = {}, .family = &family_of_directory(model())});
  const auto& denoiser = family->part(Part::Role::kDenoiser);
  for (const std::string prefix : {"model.diffusion_model.", "diffusion_model."}) {
    const auto file = Checkpoint::open_file(with_prefix(prefix));
    EXPECT_EQ(denoiser.names(file).prefix, prefix);
    EXPECT_NO_THROW(denoiser.make(Weights(file, denoiser.names(file), {}).unread()));
  }
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  auto name = info.param;
  std::erase(name, '-');
  return name;
}

const auto kWithTables =
    testing::Values("basic", "klein", "flux3", "zimage-turbo", "krea2", "qwen-image", "qwen21");
INSTANTIATE_TEST_SUITE_P(Models, PrefixedFiles, kWithTables, name_of);
INSTANTIATE_TEST_SUITE_P(Models, PrefixedNames, kWithTables, name_of);
INSTANTIATE_TEST_SUITE_P(Joy, PrefixedFiles, testing::Values("joy"), name_of);

}  // namespace braid::prefixed_files_test
