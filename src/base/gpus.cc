#include "base/gpus.h"

#include <dlfcn.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/gpu_nodes.h"
#include "base/hexadecimal.h"
#include "base/text_stream.h"

namespace braid {
namespace {

// CUDA Driver API, cuda.h: CUdevice_attribute.
constexpr int kMajor = 75, kMinor = 76;

// NVIDIA's driver library, present wherever the driver is.
class NvidiaDriver {
 public:
  NvidiaDriver() : library_(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {}

  std::vector<Gpu> gpus() const {
    const auto start = function<int (*)(unsigned)>("cuInit");
    const auto count = function<int (*)(int*)>("cuDeviceGetCount");
    int number = 0;
    if (!start || !count || start(0) != 0 || count(&number) != 0) return {};
    std::vector<Gpu> gpus;
    for (int i = 0; i < number; ++i) gpus.push_back(gpu(i));
    return gpus;
  }

 private:
  template <class Function>
  Function function(const char* name) const {
    return library_ ? reinterpret_cast<Function>(::dlsym(library_, name)) : nullptr;
  }

  Gpu gpu(int index) const {
    const auto get = function<int (*)(int*, int)>("cuDeviceGet");
    const auto attribute = function<int (*)(int*, int, int)>("cuDeviceGetAttribute");
    const auto memory = function<int (*)(std::size_t*, int)>("cuDeviceTotalMem_v2");
    int device = 0, major = 0, minor = 0;
    std::size_t bytes = 0;
    const bool is_known = get && attribute && memory && get(&device, index) == 0 &&
                          attribute(&major, kMajor, device) == 0 &&
                          attribute(&minor, kMinor, device) == 0 && memory(&bytes, device) == 0;
    if (!is_known) return {"unknown", 0};
    char name[256] = "";
    const auto get_name = function<int (*)(char*, int, int)>("cuDeviceGetName");
    if (!get_name || get_name(name, sizeof name - 1, device) != 0) name[0] = '\0';
    return {"sm_" + std::to_string(major) + std::to_string(minor), bytes, {}, name};
  }

  void* library_;  // stays: LibTorch may use it too
};

// Formatted as ROCr prints the kernel's unique_id.
std::string uuid_of(const GpuNode& node) {
  return node.unique_id == 0 ? "" : "GPU-" + hex_digits(node.unique_id);
}

std::vector<Gpu> amd_gpus() {
  std::vector<Gpu> gpus;
  for (const auto& node : read_gpu_nodes(gpu_topology()))
    gpus.push_back({node.architecture, node.bytes, uuid_of(node)});
  // The runtime applies the first variable; HIP applies the second to what is left.
  const auto seen = visible(gpus, std::getenv("ROCR_VISIBLE_DEVICES"));
  const auto* const for_hip = std::getenv("HIP_VISIBLE_DEVICES");
  return visible(seen, for_hip ? for_hip : std::getenv("CUDA_VISIBLE_DEVICES"));
}

// An entry names a GPU by its number or its uuid.
std::optional<Gpu> find(const std::vector<Gpu>& all, const std::string& entry) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
  const bool is_number = error == std::errc() && end == entry.data() + entry.size();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (is_number ? i == index : !entry.empty() && all[i].uuid == entry) return all[i];
  return {};
}

// 89 of "sm_89"; 0 of AMD's.
int capability_of(const std::string& architecture) {
  constexpr std::string_view kPrefix = "sm_";
  int number = 0;
  if (architecture.starts_with(kPrefix))
    std::from_chars(architecture.data() + kPrefix.size(), architecture.data() + architecture.size(),
                    number);
  return number;
}

}  // namespace

bool multiplies_int8(const std::string& architecture) {
  if (!architecture.starts_with("gfx")) return true;
  const auto is_of = [&](const char* family) { return architecture.starts_with(family); };
  return is_of("gfx90a") || is_of("gfx94") || is_of("gfx95");
}

bool multiplies_float8(const std::string& architecture) {
  return capability_of(architecture) >= kFirstWithFloat8;
}

std::vector<Gpu> visible(const std::vector<Gpu>& all, const char* list) {
  if (!list) return all;
  std::vector<Gpu> chosen;
  TextReader entries(list);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const auto gpu = find(all, entry);
    if (!gpu) break;
    chosen.push_back(*gpu);
  }
  return chosen;
}

std::vector<Gpu> find_gpus() {
  const auto nvidia = NvidiaDriver().gpus();
  return nvidia.empty() ? amd_gpus() : nvidia;
}

std::optional<Gpu> gpu_named(const std::string& device) {
  if (!device.starts_with("cuda")) return {};
  return gpu_named(device, find_gpus());
}

std::optional<Gpu> gpu_named(const std::string& device, const std::vector<Gpu>& gpus) {
  if (!device.starts_with("cuda")) return {};
  std::size_t index = 0;
  if (const auto colon = device.find(':'); colon != std::string::npos)
    std::from_chars(device.data() + colon + 1, device.data() + device.size(), index);
  if (index >= gpus.size()) return {};
  return gpus[index];
}

}  // namespace braid
