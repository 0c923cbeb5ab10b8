// -fsanitize-coverage=trace-pc calls this at every branch; this one is for programs that are not fuzz targets.
extern "C" __attribute__((weak)) void __sanitizer_cov_trace_pc() {}
