#include "app/machine/environment.h"

#include <algorithm>
#include <cstdlib>

#include "base/control_group.h"

namespace braid {
namespace {

constexpr const char* kNote = "BRAID_SET";  // "NAME,NAME,"

bool is_set(const std::string& name) { return std::getenv(name.c_str()) != nullptr; }

bool is_any(const std::string& architecture, std::initializer_list<const char*> known) {
  return std::any_of(known.begin(), known.end(), [&](auto name) { return architecture == name; });
}

// The version that a GPU has to claim if ROCm's libraries have no kernels for its own, but have
// some that it can run; "" for others. ROCm, "System requirements (Linux)": RDNA2 has libraries for
// gfx1030 only; on RDNA3, gfx1103, an integrated GPU, has none.
std::string claimed_version(const std::string& architecture) {
  if (is_any(architecture, {"gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"}))
    return "10.3.0";
  return architecture == "gfx1103" ? "11.0.0" : "";
}

// Flash attention from AOTriton, which LibTorch calls experimental on these. Without it attention
// writes out all of its scores.
bool has_experimental_attention(const std::string& a) {
  return is_any(a, {"gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152",
                    "gfx1153", "gfx1200", "gfx1201"});
}

bool has_hipblaslt(const std::string& a) { return is_any(a, {"gfx1100", "gfx1101"}); }

bool is_rdna(const std::string& a) {
  return a.starts_with("gfx10") || a.starts_with("gfx11") || a.starts_with("gfx12");
}

template <class Has>
std::string first_with(const std::vector<GpuNode>& gpus, Has has) {
  const auto it =
      std::find_if(gpus.begin(), gpus.end(), [&](const GpuNode& g) { return has(g.architecture); });
  return it == gpus.end() ? "" : it->architecture;
}

}  // namespace

std::vector<Variable> wanted_environment(const std::vector<GpuNode>& gpus,
                                         std::optional<double> cpus) {
  std::vector<Variable> wanted = {
      // If cores are shared with other work, a spinning thread takes time from the one it waits
      // for: the bundled model's picture took ten times as long. On idle cores sleeping costs it a
      // few hundredths of a second.
      {"OMP_WAIT_POLICY",
       "passive",
       "waiting threads sleep instead of spinning",
       {"GOMP_SPINCOUNT"}},
      {"TORCH_CPP_LOG_LEVEL", "ERROR", "keeps LibTorch's internal warnings from users"}};
  if (usable_cpus({.cpus = cpus}) < usable_cpus({}))
    wanted.push_back({"OMP_NUM_THREADS", std::to_string(usable_cpus({.cpus = cpus})),
                      "more threads would share the processor time that the container gets"});
  for (const auto& [node, architecture, bytes, id] : gpus)
    if (const auto version = claimed_version(architecture); !version.empty())
      wanted.push_back({"HSA_OVERRIDE_GFX_VERSION_" + std::to_string(node),
                        version,
                        architecture + " runs kernels of a GPU that ROCm has libraries for",
                        {"HSA_OVERRIDE_GFX_VERSION"}});
  if (const auto gpu = first_with(gpus, has_experimental_attention); !gpu.empty())
    wanted.push_back({"TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL", "1",
                      "flash attention on " + gpu + ", which is off otherwise"});
  if (const auto gpu = first_with(gpus, has_hipblaslt); !gpu.empty())
    wanted.push_back(
        {"TORCH_BLAS_PREFER_HIPBLASLT", "1", gpu + " multiplies matrices faster with it"});
  if (const auto gpu = first_with(gpus, is_rdna); !gpu.empty())
    wanted.push_back({"PYTORCH_ALLOC_CONF",
                      "expandable_segments:True",
                      "memory of " + gpu + " is not lost between blocks of other sizes",
                      {"PYTORCH_HIP_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}});
  return wanted;
}

std::vector<Variable> wanted_environment_here() {
  return wanted_environment(read_gpu_nodes(gpu_topology()), read_control_group().cpus);
}

void set_environment(const std::vector<Variable>& wanted) {
  std::string note;
  for (const auto& [name, value, why, instead] : wanted) {
    if (is_set(name) || std::any_of(instead.begin(), instead.end(), is_set)) continue;
    ::setenv(name.c_str(), value.c_str(), /*overwrite=*/0);
    note += name + ",";
  }
  ::setenv(kNote, note.c_str(), /*overwrite=*/1);
}

SetBy who_set(const std::string& name) {
  if (!is_set(name)) return SetBy::kNobody;
  const auto* const note = std::getenv(kNote);
  const bool is_ours =
      note && ("," + std::string(note)).find("," + name + ",") != std::string::npos;
  return is_ours ? SetBy::kBraid : SetBy::kUser;
}

}  // namespace braid
