;; peer.scm PIPES MB PROGRAM ARGUMENT... - for each number that it reads, so many starts by
;; open-pipe*, and a line "NS BLOCKED-NS" for each.
(use-modules (ice-9 popen) (ice-9 textual-ports) (rnrs bytevectors))

(define arguments (cdr (command-line)))
(define pipes (string->number (car arguments)))
(define memory (make-bytevector (ash (string->number (cadr arguments)) 20) 1))
(define argv (cddr arguments))

(define (now)
  (quotient (* (get-internal-real-time) 1000000000) internal-time-units-per-second))

(define (start)
  (let* ((begins (now))
         (port (apply open-pipe* OPEN_READ argv))
         (started (now))
         (said (string-length (get-string-all port)))
         (status (close-pipe port)))
    (unless (and (zero? status) (= said pipes))
      (error "the program said something else"))
    (cons (- (now) begins) (- started begins))))

(let loop ((n (read)))
  (unless (eof-object? n)
    (for-each (lambda (times)
                (format #t "~a ~a\n" (car times) (cdr times)))
              (map (lambda (i) (start)) (iota n)))
    (force-output)
    (loop (read))))
