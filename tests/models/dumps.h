// Tensors dumped from diffusers by tools/parity, and distances from them.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"
#include "weights/survey.h"
#include "weights/weights.h"

namespace braid {

inline const std::filesystem::path kParity =
    std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity";

inline double relative_error(const Tensor& got, const Tensor& want) {
  const auto a = got.to(at::kDouble), b = want.to(at::kDouble);
  return ((a - b).norm() / b.norm()).item<double>();
}

inline double largest_error(const Tensor& got, const Tensor& want) {
  const auto a = got.to(at::kDouble), b = want.to(at::kDouble);
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

template <class Config>
Config config_of(const std::filesystem::path& folder, Config (*read)(const JsonObject&)) {
  const auto path = folder / "config.json";
  const auto json = read_json(path);
  return read(JsonObject(json, path.string()));
}

template <class Config>
Config config_of_text(Config (*read)(const JsonObject&), const std::string& text = "{}") {
  const auto json = parse_json(text, "f");
  return read(JsonObject(json, "f"));
}

// The tensors of one file by name.
class Dump {
 public:
  explicit Dump(const std::filesystem::path& file) : stored_(Checkpoint::open_file(file)) {}

  bool has(const std::string& name) const { return stored_.find(name) != nullptr; }
  Tensor operator[](const std::string& name) const {
    const auto* const stored = stored_.find(name);
    check(stored != nullptr, "no ", name, " in the dump");
    return stored->view();
  }

 private:
  Checkpoint stored_;
};

inline std::map<std::string, Tensor> tensors_of(const Checkpoint& checkpoint) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, stored] : checkpoint.tensors()) tensors[name] = stored.view();
  return tensors;
}

// A checkpoint whose file is already deleted.
inline Checkpoint checkpoint_of(const std::map<std::string, Tensor>& tensors) {
  const TemporaryFolder folder;
  write_file(folder / "part.safetensors", write_safetensors(tensors));
  return Checkpoint::open_file(folder / "part.safetensors");
}

// The number of parameters of the model that `load` builds; values do not matter.
inline std::int64_t parameters_of(const std::function<void(const Weights& w)>& load) {
  std::vector<SurveyedTensor> asked;
  load(Weights::synthetic({}).surveyed(asked));
  std::int64_t sum = 0;
  for (const auto& tensor : asked) sum += c10::multiply_integers(tensor.shape);
  return sum;
}

// A folder of tests/data/parity/denoisers.
class PartFixture {
 public:
  explicit PartFixture(const std::string& name)
      : folder_(kParity / "denoisers" / name),
        manifest_(read_json(folder_ / "manifest.json")),
        dump_(folder_ / "components.safetensors") {}

  const std::filesystem::path& folder() const { return folder_; }
  const Dump& dump() const { return dump_; }
  Checkpoint weights() const { return Checkpoint::open(folder_, "diffusion_pytorch_model"); }
  Checkpoint single_file() const {
    return Checkpoint::open_file(folder_ / manifest_["single_file"]);
  }

  // Within the limit, or the reference's own difference on another instruction set: one unit in the
  // last place of MKL's exp(), times a guidance of 4000, is 1e-4 of an angle.
  void expect_equal(const Tensor& got, const std::string& name, double limit = 1e-5) const {
    ASSERT_EQ(got.sizes(), dump_[name].sizes()) << name;
    const auto spread = manifest_["float32_spread"].value(name, 0.0);
    EXPECT_LT(largest_error(got, dump_[name]), std::max(limit, 1.1 * spread)) << name;
  }
  // At most 1.1 times as far from float32 as the reference's own bfloat16.
  void expect_as_exact_as_reference(const Tensor& got, const std::string& name) const {
    EXPECT_EQ(got.scalar_type(), at::kBFloat16) << name;
    EXPECT_LE(relative_error(got, dump_[name]),
              1.1 * manifest_["bfloat16_errors"][name].get<double>())
        << name;
  }

 private:
  std::filesystem::path folder_;
  Json manifest_;
  Dump dump_;
};

}  // namespace braid
