// What -fsanitize-coverage=trace-pc calls at every branch, for programs that are no fuzz targets.
extern "C" __attribute__((weak)) void __sanitizer_cov_trace_pc() {}
