// Exceptions to sentences and exit codes.
#include "app/print/failure.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "braid/error.h"

namespace braid::failure_test {

using testing::HasSubstr;

template <class Body>
Failure failure_of(Body body, const std::string& command = "") {
  try {
    body();
  } catch (...) {
    return current_failure(command);
  }
  return {};
}

TEST(Failure, BadInputIsTwoAndAllElseOne) {
  EXPECT_EQ(failure_of([] { throw InputError("a"); }).exit_code, 2);
  EXPECT_EQ(failure_of([] { throw Error("a"); }).exit_code, 1);
  EXPECT_EQ(failure_of([] { throw std::logic_error("a"); }).exit_code, 1);
}

TEST(Failure, LibTorchsErrorsLoseTheirBacktrace) {
  const auto failure = failure_of([] { at::ones({2, 3}).mm(at::ones({4, 5})); });
  EXPECT_EQ(failure.exit_code, 1);
  EXPECT_THAT(failure.sentence, HasSubstr("cannot be multiplied"));
  EXPECT_EQ(failure.sentence.find('\n'), std::string::npos);
  EXPECT_GT(failure.details.size(), failure.sentence.size());
}

TEST(Failure, LackOfMemorySaysWhatTakesLess) {
  const auto torch = failure_of([] { at::empty({std::int64_t(1) << 60}, at::kByte); }, "generate");
  EXPECT_EQ(torch.exit_code, 1);
  EXPECT_THAT(torch.sentence,
              HasSubstr("out of memory (1152922 TB more wanted): a smaller --size"));
  const auto standard = failure_of([] { throw std::bad_alloc(); }, "bench");
  EXPECT_THAT(standard.sentence, testing::StartsWith("out of memory: a smaller --size"));
}

// What libraries say that take memory themselves: LibTorch 2.11 to 2.14 on CUDA 13 and ROCm 7, with
// cuBLAS, cuDNN 8 and 9, MIOpen, rocBLAS, NCCL and RCCL.
TEST(Failure, LackOfMemoryIsRecognisedInTheWordsOfLibraries) {
  for (const auto* const message :
       {"CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.70 GiB",
        "HIP out of memory. Tried to allocate 20.00 MiB.", "CUDA error: out of memory",
        "CUDA driver error: out of memory",
        "CUDA error: unspecified\nSearch for `cudaErrorMemoryAllocation' in "
        "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html",
        "HIP error: out of memory\nSearch for `hipErrorOutOfMemory' in https://docs.amd.com",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "CUDA error: HIPBLAS_STATUS_ALLOC_FAILED when calling `hipblasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "MIOpen error: miopenStatusAllocFailed", "rocblas_status_memory_error",
        "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n"
        "Cuda failure 2 'out of memory'",
        "HIP failure: 'out of memory'",
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 1152921504606846976 bytes."}) {
    const std::string text = message;
    for (const auto& throw_it : std::vector<std::function<void()>>{
             [&] { throw Error(text); }, [&] { throw std::runtime_error(text); },
             [&] {
               throw c10::Error({__func__, __FILE__, __LINE__}, text);
             }}) {
      const auto failure = failure_of(throw_it, "generate");
      EXPECT_EQ(failure.exit_code, 1) << text;
      EXPECT_THAT(failure.sentence, HasSubstr(": a smaller --size")) << text;
    }
  }
  for (const auto* const other :
       {"CUDA error: an illegal memory access was encountered",
        "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx`",
        "cannot read a.safetensors: Input/output error"})
    EXPECT_THAT(failure_of([&] { throw Error(other); }, "generate").sentence, other);
}

TEST(Failure, OurOwnSentencesOfLackingMemoryStay) {
  EXPECT_THAT(
      failure_of([] { throw Error("cannot encode a PNG: out of memory"); }, "generate").sentence,
      testing::StartsWith("cannot encode a PNG: out of memory: a smaller --size"));
  EXPECT_EQ(failure_of([] { throw InputError("out of memory"); }, "generate").sentence,
            "out of memory");
}

TEST(Failure, UnknownExceptionsAreNamed) {
  const auto failure = failure_of([] { throw std::out_of_range("index\nx"); });
  EXPECT_EQ(failure.sentence, "index x");
  EXPECT_EQ(failure.details, "thrown as std::out_of_range");
}

TEST(Failure, NamesFlagsWhereTheLibraryNamesFields) {
  EXPECT_EQ(with_flags("give it as `vae_file`, or `components` DIR or `components` NAME"),
            "give it as --vae-file, or --components DIR or --components NAME");
  EXPECT_EQ(with_flags("a `word` of its own"), "a `word` of its own");
  EXPECT_EQ(with_flags("`boxes`: box 1, `keep_dense` x"), "--boxes: box 1, --quantize-skip x");
  EXPECT_EQ(with_name("`boxes`: box 1, of `boxes`", "`boxes`", "a`boxes`.json"),
            "a`boxes`.json: box 1, of a`boxes`.json");
  try {
    throw InputError("give it beside a model, as `adapters`");
  } catch (...) {
    EXPECT_EQ(current_failure("generate").sentence, "give it beside a model, as --lora");
  }
}

}  // namespace braid::failure_test
